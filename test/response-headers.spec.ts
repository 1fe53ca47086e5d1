import { exchange, post, type Answer } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';

const ORIGIN = 'https://app.example';
const KEEP_ALIVE_MS = 61_000;

let service: TestService;
beforeAll(async () => {
  service = await startService({
    env: { CORS_ORIGINS: ORIGIN, METRICS: 'on', KEEP_ALIVE_TIMEOUT_MS: String(KEEP_ALIVE_MS) },
  });
});
afterAll(() => service.stop());

const send = (method: string, path: string, headers = ''): Promise<Answer> =>
  exchange(service.port, [`${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`]);
const create = (headers: Record<string, string | undefined> = {}) =>
  post(service.port, `{"id":${unusedId()},"name":"a"}`, headers);

test.each<[string, number, () => Promise<Answer>]>([
  ['a create', 200, () => create()],
  ['a bad body', 400, () => post(service.port, '{')],
  ['no token', 401, () => create({ Authorization: undefined })],
  ['an unknown path', 404, () => send('GET', '/nothing')],
  ['a method that the path does not have', 405, () => send('GET', '/plants')],
  ['OPTIONS', 204, () => send('OPTIONS', '/plants')],
  ['the readiness', 200, () => send('GET', '/health/ready')],
  ['the metrics', 200, () => send('GET', '/metrics')],
  ['a redirect', 308, () => send('GET', '/')],
])('A browser keeps nothing of the response and runs nothing in it: %s', async (_, status, ask) => {
  const answer = await ask();
  expect([answer.status, answer.headers]).toMatchObject([
    status,
    {
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-request-id': expect.stringMatching(/./) as string,
    },
  ]);
});

describe('Swagger UI', () => {
  test('has a Content-Security-Policy that allows no inline code, no eval and no other host', async () => {
    const { headers } = await send('GET', '/docs');
    expect(headers['content-security-policy']?.split(';').sort()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      "script-src 'self'",
      "style-src 'self'",
    ]);
  });

  test('is asked for again each time, and not sent again', async () => {
    const path = '/docs/swagger-ui-bundle.js';
    const { headers } = await send('GET', path);
    expect(headers['cache-control']).toBe('no-cache');
    expect((await send('GET', path, `If-None-Match: ${headers.etag}\r\n`)).status).toBe(304);
  });

  test.each(['/', '/docs/'])('is where %s leads, behind any prefix', async (path) => {
    for (const prefix of ['', '/store']) {
      const { headers } = await send('GET', path);
      const { pathname } = new URL(headers.location as string, `http://gateway.example${prefix}${path}`);
      expect(pathname).toBe(`${prefix}/docs`);
    }
  });
});

describe('A page of an allowed origin', () => {
  const preflight = () =>
    send('OPTIONS', '/plants', `Origin: ${ORIGIN}\r\nAccess-Control-Request-Method: POST\r\n`);

  test('can read the response headers that it needs, and keeps the preflight', async () => {
    const read = await create({ Origin: ORIGIN });
    expect(read.headers['access-control-expose-headers']?.split(',')).toEqual([
      'Plant-Id',
      'X-Request-Id',
      'WWW-Authenticate',
      'Retry-After',
    ]);
    expect((await preflight()).headers['access-control-max-age']).toBe('600');
    const other = await create({ Origin: 'https://other.example' });
    expect(other.headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('may send tracing headers and Content-Encoding', async () => {
    const allowed = (await preflight()).headers['access-control-allow-headers'] as string;
    expect(allowed.toLowerCase().split(',')).toEqual(
      expect.arrayContaining(['traceparent', 'tracestate', 'baggage', 'content-encoding', 'authorization']),
    );
  });
});

test('KEEP_ALIVE_TIMEOUT_MS is the limit of the server', () => {
  const server = service.app.getHttpServer();
  expect(server.keepAliveTimeout).toBe(KEEP_ALIVE_MS);
});
