import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { post } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';

const CONTRACT = JSON.parse(readFileSync('openapi.json', 'utf8')) as Record<string, unknown>;
const BASE_URL = 'https://plants.example.com/store';

let service: TestService;
beforeAll(async () => {
  service = await startService({ env: { BASE_URL } });
});
afterAll(() => service.stop());

/** @returns the contract with this base URL, the only part that the configuration changes. */
function contractAt(baseUrl: string): Record<string, unknown> {
  const servers = structuredClone(CONTRACT.servers) as [{ variables: { base_url: { default: string } } }];
  servers[0].variables.base_url.default = baseUrl;
  return { ...CONTRACT, servers };
}

const get = (path: string) => fetch(`${service.url}${path}`);

test('The service serves openapi.json', async () => {
  const served = await get('/openapi.json');
  expect(served.headers.get('content-type')).toBe('application/json');
  expect(await served.json()).toEqual(contractAt(BASE_URL));
});

test('The served document does not change after requests', async () => {
  const before = await (await get('/openapi.json')).text();
  expect((await post(service.port, `{"id":${unusedId()},"name":"a"}`)).status).toBe(200);
  expect(await (await get('/openapi.json')).text()).toBe(before);
});

test('The YAML is the same document', async () => {
  const served = await get('/openapi.yaml');
  expect(served.headers.get('content-type')).toBe('application/yaml');
  expect(load(await served.text())).toEqual(contractAt(BASE_URL));
});

// `npm run test:interop`, which installs the generator, compares the types themselves.
test('The generated types belong to the current contract', () => {
  const digest = createHash('sha256').update(readFileSync('openapi.json')).digest('hex');
  expect(readFileSync('src/openapi/contract.generated.ts', 'utf8')).toContain(
    `SHA-256 of openapi.json: ${digest}\n`,
  );
});
