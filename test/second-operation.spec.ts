import { metric } from './support/operations.js';
import { exchange, expectError, post, type Answer } from './support/requests.js';
import { withSecondOperation } from './support/second-operation.js';
import { failCreatesUnless, startService, TOKEN, unusedId, type TestService } from './support/service.js';

// The service has one operation. These tests add a second one, and show that the service handles it in the same way.
// operations.spec.ts tries what holds for every operation on it too.

let service: TestService;
beforeAll(async () => {
  service = await startService({
    env: { METRICS: 'on', CORS_ORIGINS: 'https://app.example' },
    root: withSecondOperation,
  });
});
afterAll(() => service.stop());

const AUTHORIZATION = `Authorization: Bearer ${TOKEN}\r\n`;

function send(method: string, path: string, headers = AUTHORIZATION): Promise<Answer> {
  return exchange(service.port, [
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`,
  ]);
}

async function create(id: bigint): Promise<void> {
  expect((await post(service.port, `{"id":${id},"name":"plant ${id}"}`)).status).toBe(200);
}

test.each([9223372036854775807n, -9223372036854775808n, 9007199254740993n, 0n])(
  'The path parameter is exact: %s',
  async (id) => {
    await create(id);
    const answer = await send('GET', `/second/${id}`);
    expect([answer.status, answer.json]).toEqual([200, { name: `plant ${id}` }]);
  },
);

test('A declared status is answered as it is, with the message of the operation', async () => {
  const answer = await send('GET', `/second/${unusedId()}`);
  expectError(answer, 404);
  expect(answer.json).toMatchObject({ message: 'No plant has this id.' });
});

test('A status that the operation does not declare is answered 400', async () => {
  expectError(await send('GET', '/second/1', `${AUTHORIZATION}Expect: tea\r\n`), 400, 417);
});

test.each(['/second/1/', '/second/', '/second/1/2', '/Second/1'])('%s is answered 404', async (path) => {
  const answer = await send('GET', path);
  expectError(answer, 404);
  expect(answer.json).toMatchObject({ message: 'There is nothing at this path.' });
});

test('A path parameter with an invalid percent-encoding is refused', async () => {
  const answer = await send('GET', '/second/%zz');
  expectError(answer, 400);
  expect(answer.json).toMatchObject({ message: 'The path has an invalid percent-encoding.' });
});

test.each(['DELETE', 'POST', 'PATCH'])('%s is answered 405', async (method) => {
  const answer = await send(method, '/second/1', '');
  expectError(answer, 405);
  expect(answer.headers.allow).toBe('GET, HEAD, OPTIONS');
});

test('OPTIONS is answered with the methods, and HEAD as GET without a body', async () => {
  const options = await send('OPTIONS', '/second/1', '');
  expect([options.status, options.headers.allow]).toEqual([204, 'GET, HEAD, OPTIONS']);
  await create(42n);
  const head = await send('HEAD', '/second/42');
  expect([head.status, head.text]).toEqual([200, '']);
});

test('The first operation does not change', async () => {
  const answer = await send('GET', '/plants', '');
  expectError(answer, 405);
  expect(answer.headers.allow).toBe('POST, OPTIONS');
  expectError(await post(service.port, '{}'), 400, 422);
});

test('Pages of an allowed origin may use the methods of the document', async () => {
  const preflight = await send(
    'OPTIONS',
    '/second/1',
    'Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n',
  );
  expect(preflight.headers['access-control-allow-methods']?.split(',').sort()).toEqual(['GET', 'POST']);
});

/** @returns how many shards cannot be written, as far as the service knows. */
const unwritable = async () =>
  (await metric(service, 'plants_shards')) - (await metric(service, 'plants_writable_shards'));

test('A read that succeeds does not say that creates would', async () => {
  const id = unusedId();
  await failCreatesUnless(service, 'false');
  expect((await post(service.port, `{"id":${id},"name":"a"}`)).status).toBe(503);
  expect(await unwritable()).toBe(1);
  expect((await send('GET', `/second/${id}`)).status).toBe(404);
  expect(await unwritable()).toBe(1);
  await failCreatesUnless(service, 'true');
  await create(id);
  expect(await unwritable()).toBe(0);
});

test('A read that fails does not say that creates would', async () => {
  await service.sql('ALTER TABLE plants RENAME TO elsewhere');
  expectError(await send('GET', '/second/1'), 503);
  await service.sql('ALTER TABLE elsewhere RENAME TO plants');
  expect(await unwritable()).toBe(0);
});

test('Log lines and metrics have the path template, and nothing of the path', async () => {
  const id = unusedId();
  await create(id);
  expect((await send('GET', `/second/${id}?SECRET`)).status).toBe(200);
  expect((await send('GET', '/second/SECRET')).status).toBe(400);
  const logs = service.logs();
  expect(logs).toMatch(/"method":"GET","route":"\/second\/:id","status":200/);
  expect(logs).toMatch(/"method":"GET","route":"\/second\/:id","status":400,"error":422/);
  const { text } = await send('GET', '/metrics', '');
  expect(text).toMatch(/_count\{method="GET",route="\/second\/:id",status="200"\} \d/);
  for (const place of [logs, text]) {
    expect(place).not.toContain('SECRET');
    expect(place).not.toContain(String(id));
  }
});

test('The document has the operation', async () => {
  const { json } = await send('GET', '/openapi.json', '');
  expect(json).toMatchObject({
    paths: { '/plants': { post: {} }, '/second/{id}': { get: { parameters: [{ name: 'id', in: 'path' }] } } },
  });
});
