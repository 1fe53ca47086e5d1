import { METHODS, request as httpRequest } from 'node:http';
import type { Express } from 'express';
import { expectError, post, type Answer } from './support/requests.js';
import { countRows, rowOf, startService, TOKEN, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeAll(async () => {
  service = await startService({ env: { METRICS: 'on' } });
});
afterAll(() => service.stop());

/** Every path of the service with the methods of its route. A route for GET serves HEAD too. */
const PATHS: Record<string, string[]> = {
  '/plants': ['POST'],
  '/': ['GET', 'HEAD'],
  '/docs': ['GET', 'HEAD'],
  '/docs/': ['GET', 'HEAD'],
  '/docs/initializer.js': ['GET', 'HEAD'],
  '/docs/style.css': ['GET', 'HEAD'],
  '/docs/swagger-ui-bundle.js': ['GET', 'HEAD'],
  '/docs/swagger-ui.css': ['GET', 'HEAD'],
  '/docs/icon.svg': ['GET', 'HEAD'],
  '/openapi.json': ['GET', 'HEAD'],
  '/openapi.yaml': ['GET', 'HEAD'],
  '/health/live': ['GET', 'HEAD'],
  '/health/ready': ['GET', 'HEAD'],
  '/metrics': ['GET', 'HEAD'],
};
/** All methods that Node.js parses, except CONNECT, whose target is not a path. */
const ALL_METHODS = METHODS.filter((method) => method !== 'CONNECT');

const AUTHORIZATION = { Authorization: `Bearer ${TOKEN}` };

/** @param path is sent unchanged. */
function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port: service.port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = text !== '' && response.headers['content-type']?.includes('json') === true;
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string>,
          text,
          json: isJson ? (JSON.parse(text) as unknown) : undefined,
        });
      });
    });
    request.on('error', reject).end(body);
  });
}

test('The service has no other paths than these', () => {
  const express: Express = service.app.getHttpAdapter().getInstance();
  const routes = express.router.stack.flatMap(({ route }) => (route === undefined ? [] : [route.path]));
  expect([...new Set(routes)].sort()).toEqual(Object.keys(PATHS).sort());
});

describe.each(Object.entries(PATHS))('The path %s', (path, served) => {
  const allow = [...served, 'OPTIONS'].join(', ');

  test('serves its methods', async () => {
    for (const method of served) {
      const answer = await send(method, path);
      expect([200, 308, 401]).toContain(answer.status);
      expect(answer.headers).not.toHaveProperty('allow');
    }
  });

  test('answers 405 to any other method, with or without a token', async () => {
    for (const method of ALL_METHODS.filter((other) => !served.includes(other) && other !== 'OPTIONS')) {
      for (const headers of [{}, AUTHORIZATION, { Authorization: 'Bearer nope' }]) {
        const answer = await send(method, path, headers);
        expect([method, answer.status, answer.headers.allow]).toEqual([method, 405, allow]);
        if (method === 'HEAD') {
          expect(answer.text).toBe('');
        } else {
          expectError(answer, 405);
          expect(answer.json).toHaveProperty('message', `This path allows only ${served.join(', ')}.`);
        }
      }
    }
  });

  test('answers OPTIONS with its methods', async () => {
    for (const headers of [{}, AUTHORIZATION, { Origin: 'http://other.example' }]) {
      const answer = await send('OPTIONS', `${path}?a=b`, headers);
      expect([answer.status, answer.text, answer.headers.allow]).toEqual([204, '', allow]);
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  // A route for POST alone has nothing to compare.
  if (!served.includes('GET')) return;

  test('answers HEAD with the status and headers of GET', async () => {
    // Without headers that differ between any two answers, or that frame a body.
    const stable = ({ headers }: Answer) => {
      const own = [
        'date',
        'x-request-id',
        'transfer-encoding',
        ...(path === '/metrics' ? ['content-length'] : []),
      ];
      return Object.fromEntries(Object.entries(headers).filter(([name]) => !own.includes(name)));
    };
    const [get, head] = [await send('GET', path), await send('HEAD', path)];
    expect([head.status, head.text]).toEqual([get.status, '']);
    expect(stable(head)).toEqual(stable(get));
  });
});

describe('Another spelling of the path', () => {
  const OTHERS = [
    ...[
      '/plants/',
      '/plants//',
      '//plants',
      '///plants',
      '/./plants',
      '/x/../plants',
      '/plants/.',
      '/plants/..',
    ],
    ...['/PLANTS', '/Plants', '/plantS', '/plant', '/plantss', '/plants.json', '/plants;a=b', '/plants,'],
    ...[
      '/%70lants',
      '/%50LANTS',
      '/p%6cants',
      '/plants%2F',
      '/plants%2f',
      '/%2Fplants',
      '/plants%20',
      '/plants%09',
    ],
    ...[
      '/plants%00',
      '/plants%0A',
      '/plants%3F',
      '/plants%23',
      '/plants%',
      '/%',
      '/%zz',
      '/%C3%28',
      '/%FF',
      '/%ED%A0%80',
    ],
    ...[
      '/plants\\',
      '/plants/71',
      '/plants/71/',
      '/api/plants',
      '/v1/plants',
      '/v1.0.0/plants',
      '/store/plants',
    ],
    ...['/plants*', '/:id', '/*', '/.', '/..', '/plants$', '/plants()', '/plants{}', '/plants|', '/~plants'],
    ...['/docs.', '/DOCS', '/docs//', '/docs/../openapi.json', '/docs/..%2fopenapi.json', '/docs/index.html'],
    ...[
      '/docs/swagger-ui.js',
      '/docs/%2e%2e/package.json',
      '/docs/package.json',
      '/openapi.JSON',
      '/openapi',
    ],
    ...['/health', '/health/', '/health/live/', '/Health/live', '/metrics/', '/favicon.ico', '/robots.txt'],
    ...[
      '/.env',
      '/__proto__',
      '/constructor',
      '/toString',
      `/${'a'.repeat(10_000)}`,
      `/${'a/'.repeat(4_000)}`,
    ],
  ];

  test.each(OTHERS.map((path) => [path.slice(0, 40), path]))('is answered 404: %s', async (_, path) => {
    const before = await countRows(service);
    const body = `{"id":${unusedId()},"name":"a"}`;
    for (const headers of [AUTHORIZATION, {}]) {
      const json = { ...headers, 'Content-Type': 'application/json' };
      for (const method of ['POST', 'GET', 'OPTIONS', 'DELETE']) {
        const answer = await send(method, path, json, method === 'POST' ? body : undefined);
        expectError(answer, 404);
        expect(answer.json).toHaveProperty('message', 'There is nothing at this path.');
      }
    }
    expect(await countRows(service)).toBe(before);
  });

  test.each(
    [
      ...['?', '?a', '?a=b', '?a[b]=1&%', '?%', '?%00', '?id=5&name=b&tag=T', '?a=1&a=2', '?__proto__[p]=1'],
      ...['?/../x', '??', '?//', '?=', '?&&&', '?{}', '?name=b;tag', `?${'a=b&'.repeat(2_500)}`],
    ].map((query) => [query.slice(0, 40), query]),
  )('with a query is the same path, and the query is ignored: %s', async (_, query) => {
    const id = unusedId();
    const answer = await post(service.port, `{"id":${id},"name":"a"}`, {}, `/plants${query}`);
    expect([answer.status, answer.text]).toEqual([200, '{"name":"a"}']);
    expect(await rowOf(service, id)).toEqual({ id: `${id}`, name: 'a', tag: null });
    expectError(await post(service.port, '{}', { Authorization: undefined }, `/plants${query}`), 401);
    expect(({} as { p?: unknown }).p).toBeUndefined();
  });

  test.each(['http://localhost/plants', 'https://other.example:444/plants?a', 'HTTP://[::1]/plants'])(
    'in absolute form is the same path: %s',
    async (target) => {
      const id = unusedId();
      const answer = await post(service.port, `{"id":${id},"name":"a"}`, {}, target);
      expect([answer.status, answer.text]).toEqual([200, '{"name":"a"}']);
      expectError(await post(service.port, '{}', {}, target.replace('/plants', '/PLANTS')), 404);
    },
  );
});

test('A create is answered 200 with JSON, and without headers that say more', async () => {
  const answer = await post(service.port, `{"id":${unusedId()},"name":"a","tag":"T"}`);
  expect([answer.status, answer.text]).toEqual([200, '{"name":"a","tag":"T"}']);
  expect(answer.headers['content-type']).toBe('application/json');
  for (const name of ['location', 'etag', 'set-cookie', 'x-powered-by', 'server', 'allow'])
    expect(answer.headers).not.toHaveProperty(name);
});

test('TRACE does not echo the request', async () => {
  const answer = await send('TRACE', '/plants', { ...AUTHORIZATION, Cookie: 'a=secret' });
  expectError(answer, 405);
  expect(JSON.stringify(answer)).not.toMatch(/secret|Bearer/);
});

test('No path or method adds a label to the metrics', async () => {
  const { text } = await send('GET', '/metrics');
  const labels = (name: string) =>
    new Set([...text.matchAll(new RegExp(`${name}="([^"]*)"`, 'g'))].map(([, value]) => value));
  expect([...labels('route')].filter((route) => route !== undefined && !(route in PATHS))).toEqual([
    'unmatched',
  ]);
  const known = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'];
  expect([...labels('method')].filter((method) => method !== undefined && !known.includes(method))).toEqual(
    [],
  );
});

test('After all of these no failure of the service is in the log', () => {
  expect(service.logs()).not.toMatch(/"level":[456]0/);
});
