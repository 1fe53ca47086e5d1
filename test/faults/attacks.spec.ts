import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { createTestDatabase, TEST_DATABASE_URL, type TestDatabase } from '../support/database.js';
import { Load } from '../support/load.js';
import { until } from '../support/patience.js';
import { report } from '../support/report.js';
import { post } from '../support/requests.js';
import { TOKEN } from '../support/service.js';
import { ServiceProcess } from '../support/service-process.js';
import { undoAfterEach } from '../support/undo.js';

/** The heap limit that Node.js chooses in a container of 512 MiB, and the most that may be resident, in MiB. */
const HEAP_MB = 256;
/** An embedded database has its memory in the process too. */
const EMBEDDED_MB = 256;
const RESIDENT_MB = 400 + (TEST_DATABASE_URL === undefined ? EMBEDDED_MB : 0);
const MB = 1024 * 1024;
const SAMPLE_MS = 100;

const HEAD =
  'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
  `Authorization: Bearer ${TOKEN}\r\n`;
const BUNDLE = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n';
const plant = (id: number) => `{"id":${id},"name":"plant ${id}"}`;
const withLength = (body: string | Buffer, lines = '') =>
  `${HEAD}${lines}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;

/** The connections of one attack. */
class Attackers {
  readonly sockets: Socket[] = [];
  #connected = 0;

  constructor(private readonly port: number) {}

  /** Opens a connection and writes to it. @param isDeaf makes the client read nothing. */
  open(bytes: string | Buffer, isDeaf = false): Socket {
    const socket = connect(this.port, '127.0.0.1', () => {
      this.#connected++;
      socket.write(bytes);
    });
    socket.on('error', () => undefined);
    if (isDeaf) socket.pause();
    else socket.resume();
    this.sockets.push(socket);
    return socket;
  }

  openMany(count: number, bytes: string | Buffer, isDeaf = false): void {
    for (let n = 0; n < count; n++) this.open(bytes, isDeaf);
  }

  /** Waits until every connection was made. The service may have ended some of them since. */
  async haveArrived(): Promise<void> {
    await until('every attacker is connected', () => this.#connected === this.sockets.length);
  }

  /** How many of the connections have carried bytes to the service. */
  get wrote(): number {
    return this.sockets.filter(({ bytesWritten }) => bytesWritten > 0).length;
  }

  end(): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

/** Each begins an attack, which lasts until its connections end. */
const ATTACKS: Record<string, { begin: (attackers: Attackers) => void | Promise<void>; seconds: number }> = {
  'pages whose client reads no answer': {
    begin: (attackers) => attackers.openMany(100, BUNDLE.repeat(1_200), true),
    seconds: 15,
  },
  'creates whose client reads no answer': {
    begin: (attackers) => attackers.openMany(100, (withLength(plant(1)) + plant(1)).repeat(1_200), true),
    seconds: 15,
  },
  'bodies in chunks of one byte': {
    begin: (attackers) =>
      attackers.openMany(8, `${HEAD}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(900_000)}`),
    seconds: 10,
  },
  'bodies in packets of one byte': {
    begin: async (attackers) => {
      attackers.openMany(50, `${HEAD}Content-Length: ${MB}\r\n\r\n`);
      for (let n = 0; n < 2_000; n++) {
        for (const socket of attackers.sockets) socket.setNoDelay(true).write(' ');
        await delay(1);
      }
    },
    seconds: 1,
  },
  'bodies of 1 MiB that are never finished': {
    begin: (attackers) =>
      attackers.openMany(600, `${HEAD}Content-Length: ${MB}\r\n\r\n${' '.repeat(MB - 100)}`),
    seconds: 15,
  },
  'chunked bodies of 1 MiB that are never finished': {
    begin: (attackers) =>
      attackers.openMany(
        600,
        `${HEAD}Transfer-Encoding: chunked\r\n\r\n${MB.toString(16)}\r\n${' '.repeat(MB - 100)}`,
      ),
    seconds: 15,
  },
  'small bodies that are never finished': {
    begin: (attackers) =>
      attackers.openMany(2_000, `${HEAD}Content-Length: 16384\r\n\r\n${' '.repeat(16_000)}`),
    seconds: 10,
  },
  'gzip bodies that grow a thousand times': {
    begin: (attackers) => {
      const body = gzipSync(Buffer.alloc(MB - 1, ' '));
      for (let n = 0; n < 400; n++)
        attackers.openMany(
          1,
          Buffer.concat([Buffer.from(withLength(body, 'Content-Encoding: gzip\r\n')), body]),
        );
    },
    seconds: 10,
  },
  'brotli, whose window takes 16 MB': {
    begin: (attackers) =>
      attackers.openMany(400, `${withLength('x'.repeat(26), 'Content-Encoding: br\r\n')}${'x'.repeat(26)}`),
    seconds: 5,
  },
  'heads that are never finished': {
    begin: (attackers) => attackers.openMany(2_000, `${HEAD}X: ${'x'.repeat(15_000)}`),
    seconds: 12,
  },
  'headers that take long to read': {
    begin: (attackers) => {
      const blanks = ' '.repeat(15_000);
      for (const line of [
        `Content-Type: application/json${blanks}x`,
        `Content-Encoding: gzip${blanks}x`,
        `Content-Length: 1${blanks}x`,
        `Transfer-Encoding: chunked${blanks}x`,
        `Authorization: Bearer ${blanks}x`,
        `Expect: 100-continue${blanks}x`,
        `X-Forwarded-For: ${'1,'.repeat(7_000)}`,
      ]) {
        attackers.openMany(20, `POST /plants HTTP/1.1\r\nHost: a\r\n${line}\r\n\r\n`.repeat(20));
      }
    },
    seconds: 5,
  },
};

describe('During an attack the service answers good clients and needs little memory:', () => {
  const undo = undoAfterEach();
  let database: TestDatabase;
  let service: ServiceProcess;

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await ServiceProcess.start({ ...database.env, TRUST_PROXY: 'loopback' }, undefined, HEAP_MB);
    expect((await post(service.port, plant(1))).status).toBe(200);
  });
  afterAll(async () => {
    await service.end('SIGKILL');
    await database.drop();
  });

  test.each(Object.entries(ATTACKS))('%s', async (name, { begin, seconds }) => {
    const attackers = new Attackers(service.port);
    undo(() => attackers.end());
    let resident = 0;
    const sampler = setInterval(() => {
      if (service.isRunning) resident = Math.max(resident, service.residentMemory());
    }, SAMPLE_MS);
    undo(() => clearInterval(sampler));
    const load = new Load(service.port, 1_000_000 * (1 + Object.keys(ATTACKS).indexOf(name)));
    undo(() => load.stop());
    load.start(2);
    await begin(attackers);
    await attackers.haveArrived();
    await delay(seconds * 1_000);
    await load.stop();
    report(name, { creates: load.acknowledged.size, 'highest resident memory (MB)': Math.round(resident) });
    expect(service.isRunning).toBe(true);
    // Otherwise there was no attack.
    expect(attackers.sockets).not.toHaveLength(0);
    expect(attackers.wrote).toBe(attackers.sockets.length);
    expect({ refused: load.unavailable, unanswered: load.unanswered, wrong: load.wrong }).toEqual({
      refused: 0,
      unanswered: 0,
      wrong: [],
    });
    expect(load.acknowledged.size).toBeGreaterThan(10);
    expect(resident).toBeLessThan(RESIDENT_MB);
  });
});
