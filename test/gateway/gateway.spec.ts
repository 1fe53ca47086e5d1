import { randomUUID } from 'node:crypto';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { createTestDatabase, onServer, type TestDatabase } from '../support/database.js';
import { GATEWAYS, startGateway, type Gateway } from '../support/gateway.js';
import { Load } from '../support/load.js';
import { freePort } from '../support/machine.js';
import { until } from '../support/patience.js';
import { exchange, expectError, post } from '../support/requests.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { startService, unusedId } from '../support/service.js';

/** Longer than any gateway keeps an idle connection, and much shorter than the service does (75 s). */
const IDLE_MS = 30_000;
/**
 * How many idle connections a gateway may keep. HAProxy does not always close the last one to each replica; its
 * configuration says why that does no harm. Apache closes an old one only when it next needs one. Caddy's health checks
 * use theirs.
 */
const KEPT = { nginx: 0, haproxy: 2, apache2: Infinity, caddy: 2 };
/** Whether a gateway repeats a create that a replica received before it died. If not, the client must. */
const SENDS_AGAIN = { nginx: true, haproxy: true, apache2: false, caddy: false };
/** Whether a gateway answers malformed HTTP with its own page, which no setting changes. */
const HAS_OWN_PAGE = { nginx: false, haproxy: true, apache2: false, caddy: true };
const POLL_MS = 50;
const CONNECTIONS = 16;
const UNDER_LOAD_MS = 1_500;
const MEBIBYTE = 1024 * 1024;

const SERVED = [
  ['GET', '/docs', 'text/html; charset=utf-8'],
  ['GET', '/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['GET', '/openapi.json', 'application/json'],
] as const;

const NOT_SERVED = [
  ['the root', '/'],
  ['the prefix alone', '/store'],
  ['the root below the prefix', '/store/'],
  ['a probe', '/health/live'],
  ['a probe below the prefix', '/store/health/ready'],
  ['metrics', '/metrics'],
  ['metrics by way of a served folder', '/docs/../metrics'],
  ['the same with escaped dots', '/docs/%2e%2e/metrics'],
  ['the same with an escaped slash', '/docs/..%2fmetrics'],
  ['the same below the prefix', '/store/plants/../../metrics'],
  ['a path in another case', '/PLANTS'],
  ['a path with a slash at its end', '/plants/'],
  ['a path with two slashes at its start', '//plants'],
  ['a path with a line end', '/plants%0a'],
  ['a longer path', '/plants2'],
  ['a path below the operation', '/plants/1'],
  ['the prefix twice', '/store/store/plants'],
  ['a path that starts like the prefix', '/storeplants'],
] as const;

describe.each(GATEWAYS)('%s', (name) => {
  needs(name, 'TEST_DATABASE_URL')('in front of two replicas', () => {
    let database: TestDatabase;
    let ports: [number, number];
    let replicas: [ServiceProcess, ServiceProcess];
    let gateway: Gateway;

    const env = () => ({ ...database.env, TRUST_PROXY: '127.0.0.1', METRICS: 'on', LOG_LEVEL: 'info' });
    beforeAll(async () => {
      database = await createTestDatabase();
      ports = [await freePort(), await freePort()];
      replicas = [await ServiceProcess.start(env(), ports[0]), await ServiceProcess.start(env(), ports[1])];
      gateway = await startGateway(name, ports);
    });
    afterAll(async () => {
      await gateway.stop();
      await Promise.all(replicas.map((replica) => replica.end('SIGKILL')));
      await database.drop();
    });

    const sql = (statement: string, parameters: unknown[] = []) =>
      onServer(database.env.DATABASE_URL as string, statement, parameters);

    /** Waits for the log line of a request, which is written with a delay. */
    const logOf = async (requestId: string): Promise<Record<string, unknown>> => {
      const find = () =>
        replicas
          .flatMap(({ output }) => output.split('\n'))
          .find((line) => line.includes(`"requestId":"${requestId}"`));
      await until('the request is logged', () => find() !== undefined);
      return JSON.parse(find() as string) as Record<string, unknown>;
    };

    describe.each(['', '/store'])('with the path prefix "%s"', (prefix) => {
      test('forwards the operation', async () => {
        const id = unusedId();
        const answer = await post(gateway.port, `{"id":${id},"name":"a"}`, {}, `${prefix}/plants?a=1`);
        expect([answer.status, answer.text]).toEqual([200, '{"name":"a"}']);
        expect(await sql('SELECT name FROM plants WHERE id = $1', [id])).toEqual([{ name: 'a' }]);
      });

      test.each(SERVED)('forwards %s %s', async (_, path, type) => {
        const answer = await fetch(`http://127.0.0.1:${gateway.port}${prefix}${path}`);
        expect([answer.status, answer.headers.get('content-type')]).toEqual([200, type]);
        if (path === '/openapi.json')
          expect(await answer.json()).toEqual(JSON.parse(await readFile('openapi.json', 'utf8')));
      });
    });

    test.each(NOT_SERVED)('forwards nothing else: %s', async (_, path) => {
      const answer = await exchange(gateway.port, [
        `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      ]);
      expectError(answer, 404);
    });

    test('refuses malformed HTTP', async () => {
      const answer = await exchange(gateway.port, ['GET /plants\x01 HTTP/1.1\r\nHost: a\r\n\r\n']);
      expect(answer.status).toBe(400);
      if (!HAS_OWN_PAGE[name]) expectError(answer, 400);
    });

    test('forwards a token of the longest size that the service accepts, and the answer of the service', async () => {
      const answer = await post(gateway.port, '{}', { Authorization: `Bearer ${'x'.repeat(14_000)}` });
      expectError(answer, 401);
      expect(answer.json).toMatchObject({ message: 'The bearer token is invalid or has expired.' });
    });

    test('answers 431 to headers that are too large', async () => {
      const answer = await post(gateway.port, '{}', { 'X-Large': 'x'.repeat(20_000) });
      if (HAS_OWN_PAGE[name] && answer.status === 400) return;
      expectError(answer, 431);
    });

    test('forwards the body byte for byte', async () => {
      const id = 2n ** 62n + unusedId();
      const body = `\ufeff { "name" : "\\u00e9\u0301\\/ \u{1F33F}" ,\r\n "x": 1e400, "id" : ${id}.0 } `;
      const answer = await post(gateway.port, body);
      expect([answer.status, answer.headers['plant-id']]).toEqual([200, `${id}`]);
      expect(await sql('SELECT name FROM plants WHERE id = $1', [id])).toEqual([
        { name: 'é\u0301/ \u{1F33F}' },
      ]);
      const zipped = await post(gateway.port, gzipSync(body), { 'Content-Encoding': 'gzip' });
      expect([zipped.status, zipped.headers['plant-id']]).toEqual([200, `${id}`]);
    });

    test("forwards the client's request id and trace, and gives an id to a request without one", async () => {
      const requestId = randomUUID();
      const trace = { traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: 'b7ad6b7169203331' };
      const answer = await post(gateway.port, `{"id":${unusedId()},"name":"a"}`, {
        'X-Request-Id': requestId,
        traceparent: `00-${trace.traceId}-${trace.parentSpanId}-01`,
      });
      expect(answer.headers['x-request-id']).toBe(requestId);
      expect(await logOf(requestId)).toMatchObject({ status: 200, route: '/plants', ...trace });

      const unnamed = await post(gateway.port, `{"id":${unusedId()},"name":"a"}`);
      expect(await logOf(unnamed.headers['x-request-id'] as string)).toMatchObject({ status: 200 });
    });

    test("forwards the client's real address, whatever the client claims", async () => {
      const requestId = randomUUID();
      await new Promise((resolve, reject) => {
        const headers = { 'X-Forwarded-For': '203.0.113.9', 'X-Request-Id': requestId };
        request({ port: gateway.port, localAddress: '127.0.0.2', path: '/openapi.json', headers })
          .on('response', (response) => response.resume().on('end', resolve))
          .on('error', reject)
          .end();
      });
      expect(await logOf(requestId)).toMatchObject({ client: '127.0.0.2' });
    });

    test.each([
      ['a little over the limit', MEBIBYTE + 1, 'The body must be at most 1048576 bytes.'],
      ['far over it, which nginx refuses by itself', 3 * MEBIBYTE, expect.any(String)],
    ])('answers a body %s with the Error body', async (_, length, message) => {
      const answer = await post(gateway.port, 'x'.repeat(length)).catch((error: unknown) => {
        // Caddy may reset a connection while its client still writes, before the client reads the answer.
        if (name !== 'caddy') throw error;
      });
      if (answer === undefined) return;
      expect([answer.status, answer.json]).toEqual([400, { error: 413, message: message as unknown }]);
    });

    test('does not choose between two Authorization headers', async () => {
      const answer = await post(gateway.port, `{"id":${unusedId()},"name":"a"}`, {
        'X-Other': `b\r\nAuthorization: Bearer other`,
      });
      // Apache joins the two into one header, which holds no valid token.
      const error = name === 'apache2' ? 401 : 400;
      expect([answer.status, answer.json]).toMatchObject([error, { error }]);
    });

    test('closes its idle connections before the replicas do', async () => {
      await Promise.all(
        Array.from({ length: 8 }, () => post(gateway.port, `{"id":${unusedId()},"name":"a"}`)),
      );
      expect(await connectionsTo(ports)).toBeGreaterThan(0);
      const begun = performance.now();
      // Health checks open connections too, and close them at once.
      let open: number;
      do {
        await delay(POLL_MS);
        open = await connectionsTo(ports);
      } while (open > KEPT[name] && performance.now() - begun < IDLE_MS);
      expect(open).toBeLessThanOrEqual(KEPT[name]);
    }, 180_000);

    // These come last, because they end the replicas.
    test.each(['SIGKILL', 'SIGTERM'] as const)(
      'loses no plant and stores none twice while the replicas end one by one by %s',
      async (signal) => {
        await sql('TRUNCATE plants');
        const load = new Load(gateway.port);
        load.start(CONNECTIONS);
        for (const [index, port] of ports.entries()) {
          await delay(UNDER_LOAD_MS);
          await replicas[index]?.end(signal);
          await delay(UNDER_LOAD_MS);
          replicas[index] = await ServiceProcess.start(env(), port);
        }
        await delay(UNDER_LOAD_MS);
        await load.stop();

        const { unavailable } = load;
        if (SENDS_AGAIN[name]) expect(unavailable).toBe(0);
        else await load.retry();
        const { unanswered, wrong, open } = load;
        // Apache closes the client's connection without an answer, and the client repeats the request.
        if (name !== 'apache2') expect(unanswered).toBe(0);
        expect({ wrong, open: open.size }).toEqual({ wrong: [], open: 0 });
        expect(await load.lost((statement) => sql(statement) as Promise<{ id: string }[]>)).toEqual([]);
        expect(await sql('SELECT count(*)::int FROM plants')).toEqual([{ count: load.acknowledged.size }]);
        process.stdout.write(
          `${name}, ${signal}: ${load.acknowledged.size} plants, none lost, ${unavailable} repeated\n`,
        );
      },
      180_000,
    );

    test('answers 503 with the Error body if no replica is left', async () => {
      await Promise.all(replicas.map((replica) => replica.end('SIGKILL')));
      const answer = await post(gateway.port, `{"id":${unusedId()},"name":"a"}`);
      expectError(answer, 503);
      expect(answer.headers['retry-after']).toBe('1');
    });
  });
});

test('Without TRUST_PROXY the service ignores an address that the client claims', async () => {
  const service = await startService();
  await fetch(`${service.url}/openapi.json`, { headers: { 'X-Forwarded-For': '203.0.113.9' } });
  expect(service.logs()).toContain('"client":"127.0.0.1"');
  expect(service.logs()).not.toContain('203.0.113.9');
  await service.stop();
});

/** @returns how many connections other processes have to the ports. */
async function connectionsTo(ports: readonly number[]): Promise<number> {
  const ESTABLISHED = '01';
  const files = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  const table = await readFile('/proc/net/tcp', 'utf8');
  return table
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , remote, state, , , , , , inode]) => {
      const port = parseInt(remote?.split(':')[1] ?? '', 16);
      return state === ESTABLISHED && ports.includes(port) && !files.includes(`socket:[${inode ?? ''}]`);
    }).length;
}
