import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { resolve } from 'node:path';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { OperationsPort } from '../src/operations/operations-port.js';
import { createTestDatabase, type TestDatabase } from './support/database.js';
import { expectError, exchange, post } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

const undo = undoAfterEach();
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function start(env: Record<string, string>): Promise<TestService> {
  const service = await startService({ env, database });
  undo(() => service.stop());
  return service;
}

const get = (port: number, path: string) =>
  exchange(port, [`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`]);

describe('METRICS_PORT', () => {
  const INSIDE = ['/metrics', '/health/live', '/health/ready'];
  const OUTSIDE = ['/openapi.json', '/docs', '/nothing'];

  test('moves metrics and probes to a port of their own', async () => {
    const service = await start({ METRICS: 'on', METRICS_PORT: '0' });
    const { port: inside } = service.app.get(OperationsPort);
    for (const path of INSIDE) {
      expect(await get(inside, path)).toMatchObject({ status: 200 });
      expectError(await get(service.port, path), 404);
    }
    for (const path of OUTSIDE) expectError(await get(inside, path), 404);
    expectError(await post(inside, `{"id":${unusedId()},"name":"a"}`), 400, 404);
    expect((await post(service.port, `{"id":${unusedId()},"name":"a"}`)).status).toBe(200);
    expect((await get(service.port, '/docs')).status).toBe(200);
    // Requests to both ports are counted and logged.
    const { text } = await get(inside, '/metrics');
    expect(text).toMatch(/_count\{method="GET",route="\/health\/ready",status="200"\} 1\n/);
    expect(service.logs()).toContain('"route":"/health/ready"');
  });

  test('answers bytes that are not HTTP as the other port does', async () => {
    const service = await start({ METRICS_PORT: '0' });
    expectError(await exchange(service.app.get(OperationsPort).port, ['nonsense\r\n\r\n']), 400);
  });

  test('has a MAX_CONNECTIONS of its own, and is counted in the same metrics', async () => {
    const service = await start({ METRICS: 'on', METRICS_PORT: '0', MAX_CONNECTIONS: '2' });
    const { port: inside } = service.app.get(OperationsPort);
    const open = (port: number) => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      undo(() => socket.destroy());
      return socket.resume();
    };
    const kept = [service.port, service.port, inside, inside].map(open);
    await Promise.all(kept.map((socket) => once(socket, 'connect')));
    for (const full of [service.port, inside]) await once(open(full), 'close');
    const last = kept.at(-1) as Socket;
    last.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    let metrics = '';
    last.on('data', (data) => (metrics += data.toString()));
    await once(last, 'end');
    expect(metrics).toMatch(/^http_connections 4$/m);
    expect(metrics).toMatch(/^http_connections_dropped_total 2$/m);
  });

  test('fails the start if the port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    undo(() => other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await expect(start({ METRICS_PORT: String(port) })).rejects.toMatchObject({
      code: 'EADDRINUSE',
      port,
    });
  });

  test('opens a port that closes when the service stops', async () => {
    const service = await startService({ env: { METRICS_PORT: '0' }, database });
    const { port } = service.app.get(OperationsPort);
    await service.stop();
    await expect(get(port, '/health/live')).rejects.toThrow('ECONNREFUSED');
  });
});

describe('DOCS=off', () => {
  test('removes the page and the document', async () => {
    const service = await start({ DOCS: 'off' });
    for (const path of [
      '/',
      '/docs',
      '/docs/',
      '/docs/swagger-ui-bundle.js',
      '/openapi.json',
      '/openapi.yaml',
    ])
      expectError(await get(service.port, path), 404);
    expect((await post(service.port, `{"id":${unusedId()},"name":"a"}`)).status).toBe(200);
    // The statuses of the operation are still those of the document.
    expectError(await post(service.port, '{}'), 400, 422);
  });
});

describe('The health check asks the address that the service listens on:', () => {
  const check = (env: Record<string, string>, name = 'ready') =>
    new Promise<number>((done) => {
      execFile(process.execPath, [resolve('deploy/healthcheck.js'), name], { cwd: '/', env }, (error) =>
        done(error === null ? 0 : Number(error.code)),
      );
    });
  const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === '::1'),
  );
  const hosts = ['127.0.0.1', '0.0.0.0', 'localhost', '127.0.0.2', ...(hasIpv6 ? ['::1', '::'] : [])];

  test.each(hosts)('HOST=%s', async (host) => {
    const service = await start({ HOST: host });
    const { port } = service.app.getHttpServer().address() as AddressInfo;
    expect(await check({ HOST: ` ${host}\n`, PORT: String(port), METRICS_PORT: '' })).toBe(0);
    expect(await check({ HOST: host, PORT: String(port) }, 'nothing')).toBe(1);
  });

  test('METRICS_PORT', async () => {
    const service = await start({ METRICS_PORT: '0' });
    const inside = service.app.get(OperationsPort).port;
    expect(await check({ PORT: String(service.port), METRICS_PORT: String(inside) })).toBe(0);
    expect(await check({ PORT: String(service.port) })).toBe(1);
  });

  test('and fails if nothing listens', async () => {
    expect(await check({ PORT: '1' })).toBe(1);
  });
});
