import { once } from 'node:events';
import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { DataFolder } from '../support/data-folder.js';
import { Load } from '../support/load.js';
import { freePort } from '../support/machine.js';
import { metric } from '../support/operations.js';
import { until } from '../support/patience.js';
import { PostgresCluster } from '../support/postgres-cluster.js';
import { report } from '../support/report.js';
import { needs } from '../support/requirements.js';
import { TOKEN } from '../support/service.js';
import { ServiceProcess } from '../support/service-process.js';
import { undoAfterEach } from '../support/undo.js';

const CONNECTIONS = 16;
/** More than the rows of the two statements that may be in flight, so that some creates wait. */
const CREATES_THAT_WAIT = 200;
const STOPS_OF_EACH = 3;
/** The delay before a stop, in which the gateway notices that the replica is not ready, and how often it asks. */
const SHUTDOWN_DELAY_MS = 3_000;
const GATEWAY_ASKS_EVERY_MS = 100;
const SHUTDOWN_TIMEOUT_MS = 2_000;
/** How long a stop waits for what open connections still send. */
const MOMENT_MS = 1_000;
/** A time limit that no test reaches: what waits for it hangs, and its test fails. */
const ENDLESS_MS = '600000';
const STOPPED = { code: 0, signal: null };

/** A minimal gateway: it sends each request to the next ready replica, and never repeats one. */
class Gateway {
  readonly #replicas: ServiceProcess[];
  readonly #ready = new Set<number>();
  readonly #agent = new Agent({ keepAlive: true });
  readonly #server = createServer((incoming, answer) => this.#forward(incoming, answer));
  #turn = 0;
  #isOpen = true;

  constructor(replicas: ServiceProcess[]) {
    this.#replicas = replicas;
  }

  async listen(): Promise<number> {
    await this.#ask();
    void this.#keepAsking();
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  sendsTo({ port }: ServiceProcess): boolean {
    return this.#ready.has(port);
  }

  /** One after the other: an old answer must not replace a newer one. */
  async #keepAsking(): Promise<void> {
    while (this.#isOpen) {
      await delay(GATEWAY_ASKS_EVERY_MS);
      await this.#ask();
    }
  }

  async #ask(): Promise<void> {
    await Promise.all(
      this.#replicas.map(async (replica) => {
        if ((await replica.probe('ready')) === 200) this.#ready.add(replica.port);
        else this.#ready.delete(replica.port);
      }),
    );
  }

  close(): void {
    this.#isOpen = false;
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
  }

  #forward(incoming: IncomingMessage, answer: ServerResponse): void {
    const ports = [...this.#ready];
    const port = ports[this.#turn++ % ports.length];
    const { method, url, headers } = incoming;
    const outgoing = request({ host: '127.0.0.1', port, method, path: url, headers, agent: this.#agent });
    outgoing.on('response', (response) => {
      delete response.headers.connection;
      answer.writeHead(response.statusCode as number, response.headers);
      response.pipe(answer);
    });
    outgoing.on('error', (error) => answer.writeHead(502).end(String(error)));
    incoming.pipe(outgoing);
  }
}

const HEAD = `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;

const PLANT = '{"id":1,"name":"a"}';
const CREATE = `${HEAD}Content-Length: ${PLANT.length}\r\n\r\n${PLANT}`;

/** What a client sends before the stop begins, and right after. */
const COMING = {
  'a connection that sent nothing': { before: '', after: CREATE },
  'an idle keep-alive connection': { before: 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n', after: CREATE },
  'half a head': { before: CREATE.slice(0, 50), after: CREATE.slice(50) },
  'half a body': { before: CREATE.slice(0, -5), after: CREATE.slice(-5) },
};

/** What clients send that never finish their requests. */
const UNFINISHED = {
  'an idle keep-alive connection': 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n',
  'a connection that sent nothing': '',
  'half a head': HEAD,
  'half a body': `${HEAD}Content-Length: 100\r\n\r\n{"id":`,
  'a client that waits for 100 Continue': `${HEAD}Content-Length: 20\r\nExpect: 100-continue\r\n\r\n`,
};

needs('postgres')('A service that is told to stop (SIGTERM)', () => {
  const undo = undoAfterEach();
  let cluster: PostgresCluster;

  beforeEach(async () => {
    cluster = await PostgresCluster.start();
    undo(() => cluster.remove());
  });

  async function start(env: Record<string, string> = {}, port?: number): Promise<ServiceProcess> {
    const service = await ServiceProcess.start({ DATABASE_URL: cluster.url(), ...env }, port);
    undo(() => service.end('SIGKILL'));
    return service;
  }

  test('is replaced behind a gateway without an error for any client', async () => {
    const env = { SHUTDOWN_DELAY_MS: String(SHUTDOWN_DELAY_MS) };
    const replicas = [await start(env), await start(env)];
    const gateway = new Gateway(replicas);
    undo(() => gateway.close());
    const load = new Load(await gateway.listen());
    load.start(CONNECTIONS);
    for (let stop = 0; stop < STOPS_OF_EACH * replicas.length; stop++) {
      const index = stop % replicas.length;
      const { port } = replicas[index] as ServiceProcess;
      expect(await replicas[index]?.end('SIGTERM')).toEqual(STOPPED);
      const next = await start(env, port);
      replicas[index] = next;
      await until('the gateway uses the new replica', () => gateway.sendsTo(next));
    }
    await load.stop();
    const lost = await load.lost((sql) => cluster.query(sql));
    report('Rolling deployment behind a gateway', {
      stops: STOPS_OF_EACH * replicas.length,
      acknowledged: load.acknowledged.size,
      lost: lost.length,
      'errors for clients': load.unavailable + load.unanswered + load.wrong.length,
    });
    expect({ lost, wrong: load.wrong, open: load.open.size }).toEqual({ lost: [], wrong: [], open: 0 });
  });

  test('stores and answers creates that wait for the database', async () => {
    const service = await start({
      METRICS: 'on',
      DATABASE_TIMEOUT_MS: ENDLESS_MS,
      SHUTDOWN_TIMEOUT_MS: ENDLESS_MS,
    });
    const holder = await cluster.connect();
    await holder.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
    const load = new Load(service.port);
    const creates = Array.from({ length: CREATES_THAT_WAIT }, (_, index) => load.create(index + 1));
    await until('creates wait', async () => (await metric(service, 'plants_waiting_creates')) > 0);
    await until('all have arrived', async () => (await metric(service, 'http_connections')) > creates.length);
    const exit = service.end('SIGTERM');
    await until('no new connection is accepted', async () => !(await accepts(service.port)));
    // Longer than the stop waits for clients without a request, so only the creates can hold it up.
    await delay(MOMENT_MS + 500);
    const late = await load.create(1_000);
    await holder.end();
    await Promise.all(creates);
    expect(await exit).toEqual(STOPPED);
    const lost = await load.lost((sql) => cluster.query(sql));
    report('Stopped with a waiting batch', { acknowledged: load.acknowledged.size, lost: lost.length });
    expect({ acknowledged: load.acknowledged.size, lost, late }).toEqual({
      acknowledged: creates.length,
      lost: [],
      late: false,
    });
  });

  test.each(Object.entries(UNFINISHED))('is not delayed by %s', async (name, bytes) => {
    const service = await start({
      LOG_LEVEL: 'info',
      METRICS: 'on',
      KEEP_ALIVE_TIMEOUT_MS: ENDLESS_MS,
      SHUTDOWN_TIMEOUT_MS: ENDLESS_MS,
    });
    const client = await open(service.port, bytes);
    let received = '';
    client.on('data', (data) => (received += data.toString()));
    await until('the client is connected', async () => (await metric(service, 'http_connections')) > 1);
    const begun = performance.now();
    expect(await service.end('SIGTERM')).toEqual(STOPPED);
    const elapsed = Math.round(performance.now() - begun);
    report(`Stopped with ${name}`, { 'after (ms)': elapsed });
    // The stop came before the time limit of the request.
    expect(received).not.toContain('"error":408');
    expect(service.output).toMatch(/"cut":0,/);
    client.destroy();
  });

  test('still answers requests that arrive on open connections, even unused ones', async () => {
    const service = await start({ LOG_LEVEL: 'info', METRICS: 'on' });
    const clients = await Promise.all(
      Object.values(COMING).map(async ({ before, after }) => {
        const socket = await open(service.port, before);
        let received = '';
        socket.on('data', (data) => (received += data.toString()));
        const ended = once(socket, 'end').then(() => received);
        return { socket, after, ended };
      }),
    );
    await until(
      'the service has its connections',
      async () => (await metric(service, 'http_connections')) > clients.length,
    );
    const exit = service.end('SIGTERM');
    await until('the service stops', () => service.output.includes('"Stopping"'));
    for (const { socket, after } of clients) socket.write(after);
    for (const { ended } of clients)
      expect(await ended).toMatch(
        /HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*Connection: close\r\n[^]*"name":"a"\}$/,
      );
    expect(await exit).toEqual(STOPPED);
  });

  test('ends in time while the database is frozen', async () => {
    const service = await start({
      LOG_LEVEL: 'info',
      METRICS: 'on',
      DATABASE_TIMEOUT_MS: ENDLESS_MS,
      SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS),
    });
    const load = new Load(service.port);
    load.start(CREATES_THAT_WAIT);
    await load.more(CREATES_THAT_WAIT);
    cluster.freeze();
    undo(() => cluster.thaw());
    await until('creates wait', async () => (await metric(service, 'plants_waiting_creates')) > 0);
    const begun = performance.now();
    expect(await service.end('SIGTERM')).toEqual(STOPPED);
    // The creates that wait had all of their time.
    expect(performance.now() - begun).toBeGreaterThanOrEqual(SHUTDOWN_TIMEOUT_MS);
    expect(service.output).toMatch(/"cut":[1-9]/);
    await load.stop();
    cluster.thaw();
    expect(await load.lost((sql) => cluster.query(sql))).toEqual([]);
  });

  describe('before it is ready', () => {
    const HINDRANCES: [string, () => Promise<string>][] = [
      ['the database is down', async () => `postgres://plant@127.0.0.1:${await freePort()}/postgres`],
      [
        'the database does not answer',
        () => {
          cluster.freeze();
          undo(() => cluster.thaw());
          return Promise.resolve(cluster.url());
        },
      ],
      [
        'another replica migrates the database',
        async () => {
          const other = await cluster.connect();
          await other.query('BEGIN; SELECT pg_advisory_xact_lock(7309868274398)');
          undo(() => other.end());
          return cluster.url();
        },
      ],
    ];

    test.each(HINDRANCES)('ends in time if %s', async (_name, hinder) => {
      const service = await ServiceProcess.spawn({
        DATABASE_URL: await hinder(),
        DATABASE_TIMEOUT_MS: ENDLESS_MS,
        SHUTDOWN_TIMEOUT_MS: ENDLESS_MS,
      });
      undo(() => service.end('SIGKILL'));
      await until('the service listens', async () => (await service.probe('live')) === 200);
      expect(await service.probe('ready')).toBe(503);
      expect(await service.end('SIGTERM')).toEqual(STOPPED);
    });
  });
});

describe('A service on the embedded database that is told to stop (SIGTERM)', () => {
  const undo = undoAfterEach();

  test('keeps every acknowledged plant', async () => {
    const folder = new DataFolder();
    undo(() => folder.remove());
    const service = await ServiceProcess.start({ DATA_DIR: folder.path });
    undo(() => service.end('SIGKILL'));
    const load = new Load(service.port);
    load.start(CONNECTIONS);
    await load.more(10 * CONNECTIONS);
    expect(await service.end('SIGTERM')).toEqual(STOPPED);
    await load.stop();
    const lost = await load.lost((sql) => folder.query(sql));
    report('Stopped under load, embedded', { acknowledged: load.acknowledged.size, lost: lost.length });
    expect({ lost, wrong: load.wrong }).toEqual({ lost: [], wrong: [] });
  });
});

/** @returns whether the port accepts connections. */
async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function open(port: number, bytes: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}
