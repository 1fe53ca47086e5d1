import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import request from 'supertest';
import { startService, TOKEN, unusedId, type TestService } from './support/service.js';

const CONTRACT = JSON.parse(readFileSync('openapi.json', 'utf8')) as Record<string, unknown>;
const BASE_URL = 'https://plants.example.com/store';

let service: TestService;
beforeAll(async () => {
  service = await startService({ env: { BASE_URL } });
});
afterAll(() => service.stop());

/** The contract with the one member that the configuration may change. */
function contractAt(baseUrl: string): Record<string, unknown> {
  const servers = structuredClone(CONTRACT.servers) as [{ variables: { base_url: { default: string } } }];
  servers[0].variables.base_url.default = baseUrl;
  return { ...CONTRACT, servers };
}

test('the served document is the contract, member for member', async () => {
  const served = await request(service.url).get('/openapi.json');
  expect(served.headers['content-type']).toBe('application/json');
  expect(served.body).toEqual(contractAt(BASE_URL));
});

test('it is served without change again, and after requests', async () => {
  const before = await request(service.url).get('/openapi.json');
  await request(service.url)
    .post('/plants')
    .set('Authorization', `Bearer ${TOKEN}`)
    .send({ id: Number(unusedId()), name: 'a' });
  expect((await request(service.url).get('/openapi.json')).text).toBe(before.text);
});

test('the YAML is the same document', async () => {
  const served = await request(service.url).get('/openapi.yaml');
  expect(served.headers['content-type']).toBe('application/yaml');
  expect(load(served.body instanceof Buffer ? served.body.toString() : served.text)).toEqual(
    contractAt(BASE_URL),
  );
});

test('the types that the code implements are made from the contract as it is', () => {
  const types = execFileSync(process.execPath, ['scripts/openapi-types.js'], { encoding: 'utf8' });
  expect(readFileSync('src/openapi/contract.generated.ts', 'utf8')).toBe(types);
});
