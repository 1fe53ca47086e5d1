import { randomUUID } from 'node:crypto';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { createTestDatabase, onServer, type TestDatabase } from '../support/database.js';
import { GATEWAYS, startGateway, type Gateway } from '../support/gateway.js';
import { Load } from '../support/load.js';
import { freePort } from '../support/machine.js';
import { exchange, expectError, post } from '../support/requests.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { startService, unusedId } from '../support/service.js';

const LOG_MS = 5_000;
/** Longer than either gateway keeps a connection that is not used, and far shorter than the service does (75 s). */
const IDLE_MS = 30_000;
/**
 * HAProxy does not always end the last connection to each replica; its configuration says why that does no harm. Apache
 * ends one that is too old when it would use it next. Caddy's health checks keep theirs in use.
 */
const KEPT = { nginx: 0, haproxy: 2, apache2: Infinity, caddy: 2 };
/** Apache and Caddy do not send a create again that a replica took before it died: that is the client's to do. */
const SENDS_AGAIN = { nginx: true, haproxy: true, apache2: false, caddy: false };
/** What is no HTTP at all these answer with a page of their own, which no setting changes. */
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
  ['the same in escapes', '/docs/%2e%2e/metrics'],
  ['the same behind an escaped slash', '/docs/..%2fmetrics'],
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
  needs(name, 'TEST_DATABASE_URL')('before two replicas', () => {
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

    /** What a replica logged of a request. The lines are written with a delay. */
    const logOf = async (requestId: string): Promise<Record<string, unknown>> => {
      const begun = Date.now();
      while (Date.now() - begun < LOG_MS) {
        const lines = replicas.flatMap(({ output }) => output.split('\n'));
        const line = lines.find((candidate) => candidate.includes(`"requestId":"${requestId}"`));
        if (line !== undefined) return JSON.parse(line) as Record<string, unknown>;
        await delay(POLL_MS);
      }
      throw new Error(`no log line for ${requestId}`);
    };

    describe.each(['', '/store'])('below "%s"', (prefix) => {
      test('lets the operation through', async () => {
        const id = unusedId();
        const answer = await post(gateway.port, `{"id":${id},"name":"a"}`, {}, `${prefix}/plants?a=1`);
        expect([answer.status, answer.text]).toEqual([200, '{"name":"a"}']);
        expect(await sql('SELECT name FROM plants WHERE id = $1', [id])).toEqual([{ name: 'a' }]);
      });

      test.each(SERVED)('lets %s %s through', async (_, path, type) => {
        const answer = await fetch(`http://127.0.0.1:${gateway.port}${prefix}${path}`);
        expect([answer.status, answer.headers.get('content-type')]).toEqual([200, type]);
        if (path === '/openapi.json')
          expect(await answer.json()).toEqual(JSON.parse(await readFile('openapi.json', 'utf8')));
      });
    });

    test.each(NOT_SERVED)('lets nothing else through: %s', async (_, path) => {
      const answer = await exchange(gateway.port, [
        `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      ]);
      expectError(answer, 404);
    });

    test('refuses what is no HTTP', async () => {
      const answer = await exchange(gateway.port, ['GET /plants\x01 HTTP/1.1\r\nHost: a\r\n\r\n']);
      expect(answer.status).toBe(400);
      if (!HAS_OWN_PAGE[name]) expectError(answer, 400);
    });

    test('hands on a token as long as the service takes, and the words of the service', async () => {
      const answer = await post(gateway.port, '{}', { Authorization: `Bearer ${'x'.repeat(14_000)}` });
      expectError(answer, 401);
      expect(answer.json).toMatchObject({ message: 'The bearer token is not valid, or no longer.' });
    });

    test('says of headers that are too large what they are', async () => {
      const answer = await post(gateway.port, '{}', { 'X-Large': 'x'.repeat(20_000) });
      if (HAS_OWN_PAGE[name] && answer.status === 400) return;
      expectError(answer, 431);
    });

    test('hands the body on byte for byte: one that reads and writes JSON stores another plant', async () => {
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

    test("hands on the client's request id and trace, and names a request that has no id", async () => {
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

    test("logs the client's own address, whatever the client says that it is", async () => {
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
      ["far over it, which nginx refuses in the service's place", 3 * MEBIBYTE, expect.any(String)],
    ])('answers a body %s with the Error body', async (_, length, message) => {
      const answer = await post(gateway.port, 'x'.repeat(length)).catch((error: unknown) => {
        // Caddy may reset a connection whose client still writes, before that has read the answer.
        if (name !== 'caddy') throw error;
      });
      if (answer === undefined) return;
      expect([answer.status, answer.json]).toEqual([400, { error: 413, message: message as unknown }]);
    });

    test('does not choose between two Authorization headers', async () => {
      const answer = await post(gateway.port, `{"id":${unusedId()},"name":"a"}`, {
        'X-Other': `b\r\nAuthorization: Bearer other`,
      });
      // Apache makes one header of the two, and no token is like that.
      const error = name === 'apache2' ? 401 : 400;
      expect([answer.status, answer.json]).toMatchObject([error, { error }]);
    });

    test('ends the connections that it keeps to the replicas before the replicas would', async () => {
      await Promise.all(
        Array.from({ length: 8 }, () => post(gateway.port, `{"id":${unusedId()},"name":"a"}`)),
      );
      expect(await connectionsTo(ports)).toBeGreaterThan(0);
      const begun = Date.now();
      // The health checks make connections too, and end them at once.
      let open: number;
      do {
        await delay(POLL_MS);
        open = await connectionsTo(ports);
      } while (open > KEPT[name] && Date.now() - begun < IDLE_MS);
      expect(open).toBeLessThanOrEqual(KEPT[name]);
    }, 180_000);

    // Last, since it ends the replicas.
    test.each(['SIGKILL', 'SIGTERM'] as const)(
      'shows no client but a 503 to be sent again when the replicas end by %s, one after the other, and stores each plant once',
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
        // Apache ends the client's connection without an answer, so that the client sends again.
        if (name !== 'apache2') expect(unanswered).toBe(0);
        expect({ wrong, open: open.size }).toEqual({ wrong: [], open: 0 });
        expect(await load.lost((statement) => sql(statement) as Promise<{ id: string }[]>)).toEqual([]);
        expect(await sql('SELECT count(*)::int FROM plants')).toEqual([{ count: load.acknowledged.size }]);
        process.stdout.write(
          `${name}, ${signal}: ${load.acknowledged.size} plants, none lost, ${unavailable} sent again\n`,
        );
      },
      180_000,
    );

    test('answers 503 with the Error body when no replica is left', async () => {
      await Promise.all(replicas.map((replica) => replica.end('SIGKILL')));
      const answer = await post(gateway.port, `{"id":${unusedId()},"name":"a"}`);
      expectError(answer, 503);
      expect(answer.headers['retry-after']).toBe('1');
    });
  });
});

test('an address that the client claims is not believed without TRUST_PROXY', async () => {
  const service = await startService();
  await fetch(`${service.url}/openapi.json`, { headers: { 'X-Forwarded-For': '203.0.113.9' } });
  expect(service.logs()).toContain('"client":"127.0.0.1"');
  expect(service.logs()).not.toContain('203.0.113.9');
  await service.stop();
});

/** How many connections others than this process have to the ports, as Linux tells. */
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
