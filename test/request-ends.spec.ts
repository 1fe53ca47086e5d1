import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { jest } from '@jest/globals';
import { Connections } from '../src/connection/connections.js';
import { converse } from './support/connection.js';
import { until } from './support/patience.js';
import { expectError, parseAnswer, post, type Answer } from './support/requests.js';
import { holdCreates, rowOf, startService, TOKEN, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

const HOST = 'Host: localhost\r\n';
const LINE = `POST /plants HTTP/1.1\r\n${HOST}`;
const GOOD = `${LINE}Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const LIMIT = 64 * 1024;

let service: TestService;
const undo = undoAfterEach();
beforeAll(async () => {
  service = await startService({ env: { BODY_LIMIT: '64kb', BODY_BUDGET: '128kb', METRICS: 'on' } });
});
afterAll(() => service.stop());

const plant = (id: bigint, name = 'a') => `{"id":${id},"name":"${name}"}`;
const create = (id: bigint, name = 'a', lines = '') =>
  `${GOOD}${lines}Content-Length: ${plant(id, name).length}\r\n\r\n${plant(id, name)}`;
const last = () => create(unusedId(), 'a', 'Connection: close\r\n');

/** @returns the service's side of the next connection. */
async function nextConnection(): Promise<Socket> {
  const [socket] = (await once(service.app.getHttpServer(), 'connection')) as [Socket];
  return socket;
}

/** Stops the clock of durations until the test ends. @returns a function that moves it on by milliseconds. */
function takeClock(): (ms: number) => void {
  // Whole, so that sums are exact.
  let now = Math.ceil(performance.now());
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
  undo(() => clock.mockRestore());
  return (ms) => (now += ms);
}

/** A client that writes any bytes, and reads one answer at a time. */
class Client {
  readonly socket: Socket;
  #received = '';
  #ended = false;

  constructor(port = service.port) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('data', (data) => (this.#received += data.toString('latin1')));
    this.socket.on('end', () => (this.#ended = true));
    undo(() => this.socket.destroy());
  }

  write(bytes: string): this {
    this.socket.write(bytes, 'latin1');
    return this;
  }

  /** Waits for 100 Continue. */
  async continued(): Promise<void> {
    const leave = 'HTTP/1.1 100 Continue\r\n\r\n';
    while (this.#received.length < leave.length) await once(this.socket, 'data');
    expect(this.#received).toBe(leave);
    this.#received = '';
  }

  /** Waits for the next answer. @throws if the connection ends or is reset before it. */
  async answer(): Promise<Answer> {
    for (;;) {
      const headEnd = this.#received.indexOf('\r\n\r\n') + 4;
      const length = /^content-length: (\d+)$/im.exec(this.#received.slice(0, headEnd))?.[1];
      const end = headEnd + Number(length);
      if (headEnd > 3 && this.#received.length >= end) {
        const answer = parseAnswer(Buffer.from(this.#received.slice(0, end), 'latin1'));
        this.#received = this.#received.slice(end);
        return answer;
      }
      if (this.#ended) throw new Error(`ended after ${this.#received}`);
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'end')]);
    }
  }

  async end(): Promise<void> {
    if (!this.#ended) await once(this.socket, 'end');
  }
}

describe('Requests on one connection', () => {
  test('are processed in order: of two creates of one id the first wins', async () => {
    for (let time = 0; time < 50; time++) {
      const id = unusedId();
      const answers = await converse(service.port, [create(id, 'first') + create(id, 'second') + last()]);
      expect(answers.map(({ json }) => json)).toMatchObject([
        { name: 'first' },
        { error: 409 },
        { name: 'a' },
      ]);
      expect(await rowOf(service, id)).toMatchObject({ name: 'first' });
    }
  });

  test('may be pipelined without limit; each is read after the previous one is answered', async () => {
    let atOnce = 0;
    let mostAtOnce = 0;
    const count = (_request: IncomingMessage, response: ServerResponse) => {
      mostAtOnce = Math.max(mostAtOnce, ++atOnce);
      response.on('finish', () => atOnce--);
    };
    const server = service.app.getHttpServer().on('request', count);
    undo(() => server.off('request', count));
    const ids = Array.from({ length: 300 }, () => unusedId());
    const answers = await converse(service.port, [...ids.map((id) => create(id)), last()]);
    expect(answers.map(({ status }) => status)).toEqual(Array(301).fill(200));
    expect(mostAtOnce).toBe(1);
  });

  test('wait in the kernel while one is being answered', async () => {
    const accepted = nextConnection();
    const goOn = await holdCreates(service);
    undo(goOn);
    const requests = Array.from({ length: 10_000 }, () => create(unusedId())).join('');
    const client = new Client().write(requests);
    const socket = await accepted;
    await until('the next request is held back', () => socket.isPaused());
    const read = socket.bytesRead;
    expect((await post(service.port, '', { Authorization: undefined })).status).toBe(401);
    expect(socket.bytesRead).toBe(read);
    expect(read).toBeLessThan(requests.length / 2);
    await goOn();
    expect((await client.answer()).status).toBe(200);
    client.socket.destroy();
    await until('the connection is closed', () => socket.destroyed);
  });

  test('are answered even if the client has ended its side meanwhile', async () => {
    const goOn = await holdCreates(service);
    undo(goOn);
    const accepted = nextConnection();
    const answers = converse(service.port, [create(unusedId())], { thenEnd: true });
    const socket = await accepted;
    await until('the end has arrived', () => socket.readableEnded);
    await goOn();
    expect(await answers).toMatchObject([{ status: 200 }]);
  });

  test.each([
    ['whole', '', []],
    ['the last one not', 'POST /plants HTTP/1.1\r\nHost: a', [400]],
  ])('are all answered, of a client that has ended its side: %s', async (_, rest, more) => {
    const ids = Array.from({ length: 5 }, unusedId);
    const goOn = await holdCreates(service);
    undo(goOn);
    const accepted = nextConnection();
    const answers = converse(service.port, [ids.map((id) => create(id)).join('') + rest], { thenEnd: true });
    const socket = await accepted;
    await until('the end has arrived', () => socket.readableEnded);
    await goOn();
    expect((await answers).map(({ status }) => status)).toEqual([...ids.map(() => 200), ...more]);
    for (const id of ids) expect(await rowOf(service, id)).toBeDefined();
  });

  test.each([1, 2, 3, 7, 100, 1_000])('may arrive in pieces of any size: %i bytes', async (size) => {
    const body = plant(unusedId());
    const chunked =
      `${GOOD}Transfer-Encoding:\tchunked\r\n\r\n1;a="b"\r\n{\r\n` +
      `${(body.length - 1).toString(16)}\r\n${body.slice(1)}\r\n0\r\nA: b\r\n\r\n`;
    const upgrade = `GET /health/live HTTP/1.1\r\n${HOST}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n`;
    const requests = [
      create(unusedId()),
      chunked,
      upgrade,
      `\r\n${create(unusedId())}`,
      chunked,
      last(),
    ].join('');
    const socket = new Client();
    socket.socket.setNoDelay(true);
    for (let at = 0; at < requests.length; at += size) {
      socket.write(requests.slice(at, at + size));
      await delay(0);
    }
    for (let n = 0; n < 6; n++) expect((await socket.answer()).status).toBe(200);
    await socket.end();
  });
});

describe('Trailers', () => {
  test.each([
    'Connection: close',
    'Proxy-Connection: close',
    'Connection: upgrade\r\nUpgrade: h2c',
    'Expect: tea',
  ])('have no effect on the connection: %s', async (trailer) => {
    const id = unusedId();
    const chunk = `${plant(id).length.toString(16)}\r\n${plant(id)}\r\n`;
    const client = new Client().write(
      `${GOOD}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n${trailer}\r\n\r\n`,
    );
    const answer = await client.answer();
    expect([answer.status, answer.headers.connection]).toEqual([200, 'keep-alive']);
    expect((await client.write(create(unusedId())).answer()).status).toBe(200);
    expect((await client.write(create(unusedId()) + create(unusedId())).answer()).status).toBe(200);
    expect((await client.answer()).status).toBe(200);
  });

  test('of a request without a token have no effect on the connection', async () => {
    const client = new Client().write(
      `${LINE}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nConnection: close\r\n\r\n`,
    );
    const answer = await client.answer();
    expect([answer.status, answer.headers.connection]).toEqual([401, 'keep-alive']);
    expect((await client.write(create(unusedId())).answer()).status).toBe(200);
  });
});

describe('An answer before the end of the body', () => {
  const refused: [what: string, error: number, lines: string][] = [
    ['no token', 401, LINE],
    ['another media type', 415, `${LINE}Authorization: Bearer ${TOKEN}\r\nContent-Type: text/plain\r\n`],
    ['another method', 405, `PUT /plants HTTP/1.1\r\n${HOST}`],
    ['another path', 404, `POST /other HTTP/1.1\r\n${HOST}`],
  ];

  test.each(refused)('keeps the connection if little is left: %s', async (_, error, lines) => {
    const client = new Client().write(`${lines}Content-Length: 9000\r\n\r\n `);
    const answer = await client.answer();
    expect([answer.json, answer.headers.connection]).toMatchObject([{ error }, 'keep-alive']);
    client.write(' '.repeat(4_000));
    await delay(50);
    client.write(' '.repeat(4_999) + create(unusedId()));
    expect((await client.answer()).status).toBe(200);
  });

  test.each([
    [16 * 1024, 'keep-alive'],
    [16 * 1024 + 1, 'close'],
  ])('means by little up to 16 KiB: %i bytes', async (rest, connection) => {
    const answer = await new Client().write(`${LINE}Content-Length: ${rest}\r\n\r\n`).answer();
    expect([answer.status, answer.headers.connection]).toEqual([401, connection]);
  });

  test.each([
    ...refused.map(
      ([what, error, lines]) => [what, error, `${lines}Content-Length: 60000\r\n\r\n `] as const,
    ),
    ...refused.map(
      ([what, error, lines]) =>
        [`${what}, in chunks`, error, `${lines}Transfer-Encoding: chunked\r\n\r\n`] as const,
    ),
    ['too large', 413, `${GOOD}Content-Length: ${LIMIT + 1}\r\n\r\n`] as const,
    [
      'too large, in chunks',
      413,
      `${GOOD}Transfer-Encoding: chunked\r\n\r\nfffff\r\n${' '.repeat(LIMIT + 1)}`,
    ] as const,
  ])('says Connection: close, and lets the client finish sending: %s', async (_, error, bytes) => {
    const connections = service.app.get(Connections);
    const { lingerSilent, linger } = connections.limits;
    const pass = takeClock();
    const accepted = nextConnection();
    const failures: unknown[] = [];
    const client = new Client().write(bytes);
    client.socket.on('error', (failure) => failures.push(failure));
    const socket = await accepted;
    const answer = await client.answer();
    expect([answer.json, answer.headers.connection]).toMatchObject([{ error }, 'close']);
    await client.end();
    // Nearly as long as the service waits in total.
    for (let time = 0; time + lingerSilent < linger; time += lingerSilent - 1) {
      const before = socket.bytesRead;
      client.write(' '.repeat(100));
      await until('the service has read it', () => socket.bytesRead > before);
      pass(lingerSilent - 1);
      connections.check();
      expect(socket.destroyed).toBe(false);
    }
    expect(failures).toEqual([]);
    pass(1);
    connections.check();
    expect(socket.destroyed).toBe(true);
    const closed = once(client.socket, 'close');
    client.socket.end();
    await closed;
  });
});

describe('Bodies in transit', () => {
  const NO_ROOM = {
    error: 503,
    message: 'The service has no room for more request bodies; the same request may be sent again.',
  };

  test('share a budget: a large body beyond it is refused unread, and small ones are accepted', async () => {
    const size = 40_000;
    const head = `${GOOD}Content-Length: ${size}\r\n`;
    const held = Array.from({ length: 3 }, () => new Client().write(`${head}Expect: 100-continue\r\n\r\n`));
    for (const client of held) await client.continued();
    const refused = await new Client().write(`${head}\r\n`).answer();
    expect([
      refused.status,
      refused.json,
      refused.headers['retry-after'],
      refused.headers.connection,
    ]).toEqual([503, NO_ROOM, '1', 'close']);
    const inChunks = new Client().write(`${GOOD}Transfer-Encoding: chunked\r\n\r\nffff\r\n`);
    inChunks.write(' '.repeat(50_000));
    expect((await inChunks.answer()).json).toEqual(NO_ROOM);
    const small = new Client().write(`${GOOD}Content-Length: 1000\r\n\r\n`);
    await delay(20);
    expect((await small.write(plant(unusedId()).padEnd(1_000)).answer()).status).toBe(200);
    expect((await post(service.port, plant(unusedId()))).status).toBe(200);

    // A body that ends makes room, in whatever way it ends.
    held[0]?.socket.destroy();
    held[1]?.write('{'.padEnd(size));
    held[2]?.write(plant(unusedId()).padEnd(size));
    expect((await held[1]?.answer())?.status).toBe(400);
    expect((await held[2]?.answer())?.status).toBe(200);
    for (let time = 0; time < 20; time++) {
      const client = new Client().write(`${head}Connection: close\r\n\r\n`);
      await delay(5);
      expect((await client.write(plant(unusedId()).padEnd(size)).answer()).status).toBe(200);
    }
  });
});

test('Coded bodies count against the budget until they are decoded', async () => {
  // Random bytes stay as large when they are coded.
  const body = gzipSync(randomBytes(40_000));
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => post(service.port, body, { 'Content-Encoding': 'gzip' })),
  );
  const errors = answers.map(({ json }) => (json as { error: number }).error);
  // Few fit. They are decoded, and are no text.
  expect(new Set(errors)).toEqual(new Set([400, 503]));
  // The budget is whole again.
  expect((await post(service.port, plant(unusedId()).padEnd(LIMIT))).status).toBe(200);
});

test('A client that leaves while its token is checked gives its share of the budget back', async () => {
  let open: () => void = () => undefined;
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  const slow = await startService({
    env: { BODY_LIMIT: '64kb', BODY_BUDGET: '64kb' },
    // Stands for a token issuer that answers slowly.
    prepare: (app) =>
      app.use(async (request: IncomingMessage, _response: ServerResponse, next: () => void) => {
        if (request.headers['x-slow'] !== undefined) await isOpen;
        next();
      }),
  });
  undo(() => slow.stop());
  const socket = connect(slow.port, '127.0.0.1', () =>
    socket.write(`${GOOD}X-Slow: yes\r\nContent-Length: ${LIMIT}\r\n\r\n `),
  );
  undo(() => socket.destroy());
  const [request] = (await once(slow.app.getHttpServer(), 'request')) as [IncomingMessage];
  socket.resetAndDestroy();
  await until('the service notices', () => request.destroyed);
  open();
  const whole = plant(unusedId()).padEnd(LIMIT);
  const head = `${GOOD}Connection: close\r\nContent-Length: ${LIMIT}\r\n\r\n`;
  const [answer] = await converse(slow.port, [head, whole]);
  expect(answer?.status).toBe(200);
});

describe('A connection', () => {
  test('that was used is not cut as idle once a head has begun', async () => {
    const keep = await startService({ env: { KEEP_ALIVE_TIMEOUT_MS: '1000' } });
    undo(() => keep.stop());
    const client = new Client(keep.port).write(create(unusedId()));
    expect((await client.answer()).status).toBe(200);
    const next = create(unusedId());
    client.write(next.slice(0, 50));
    // Longer than an idle connection is kept, and shorter than a head may take.
    await delay(3_500);
    expect((await client.write(next.slice(50)).answer()).status).toBe(200);
  });

  test('may be opened long before its first request', async () => {
    const connections = service.app.get(Connections);
    const { head, request, unused } = connections.limits;
    const longer = 2 * Math.max(head, request);
    expect(longer).toBeLessThan(unused);
    const accepted = nextConnection();
    const client = new Client();
    const socket = await accepted;
    const pass = takeClock();
    for (let requests = 0; requests < 2; requests++) {
      pass(longer);
      connections.check();
      const { bytesRead } = socket;
      const next = create(unusedId());
      client.write(next.slice(0, 50));
      await until('the service has read it', () => socket.bytesRead > bytesRead);
      connections.check();
      expect((await client.write(next.slice(50)).answer()).status).toBe(200);
    }
  });

  test('beyond MAX_CONNECTIONS is closed and counted, the log says so once, and the others are served', async () => {
    const few = await startService({ env: { MAX_CONNECTIONS: '3', METRICS: 'on' } });
    undo(() => few.stop());
    const open = () => connect(few.port, '127.0.0.1').on('error', () => undefined);
    const kept = [open(), open(), open()];
    undo(() => kept.forEach((socket) => socket.destroy()));
    await Promise.all(kept.map((socket) => once(socket, 'connect')));
    for (let time = 0; time < 5; time++) await once(open().resume(), 'close');
    kept[0]?.write(`GET /metrics HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    let metrics = '';
    kept[0]?.on('data', (data) => (metrics += data.toString()));
    await once(kept[0] as Socket, 'end');
    expect(metrics).toMatch(/^http_connections 3$/m);
    expect(metrics).toMatch(/^http_connections_dropped_total 5$/m);
    expect(few.logs().match(/MAX_CONNECTIONS/g)).toHaveLength(1);
    kept.forEach((socket) => socket.destroy());
    await until('all connections are closed', () => few.app.get(Connections).count === 0);
    expect((await post(few.port, plant(unusedId()))).status).toBe(200);
  });
});

describe('Bytes that are no request', () => {
  test.each([
    ['a TLS client', Buffer.from('16030100f1010000ed0303', 'hex').toString('latin1')],
    ['an SMTP greeting', 'EHLO localhost\r\n'],
    ['LF alone', 'GET / HTTP/1.1\nHost: a\n'],
    ['a malformed header, then another', `${LINE}X Y: z\r\nA: b`],
  ])('are refused without waiting for more, with a Date: %s', async (_, bytes) => {
    const before = service.logs().split('"msg":"request"').length;
    const answer = await new Client().write(bytes).answer();
    expectError(answer, 400);
    expect(answer.headers).toMatchObject({ connection: 'close' });
    expect(new Date(answer.headers.date as string).getTime()).toBeGreaterThan(0);
    expect(service.logs().split('"msg":"request"')).toHaveLength(before + 1);
  });
});

test('A client that reads nothing of its response is disconnected; one that reads slowly is not', async () => {
  const connections = service.app.get(Connections);
  const before = { ...connections.limits };
  undo(() => Object.assign(connections.limits, before));
  Object.assign(connections.limits, { stalledResponse: 2_000 });
  // The responses are more than the kernel buffers.
  const requests = `GET /docs/swagger-ui-bundle.js HTTP/1.1\r\n${HOST}\r\n`.repeat(20);
  const deaf = connect(service.port, '127.0.0.1', () => deaf.write(requests)).pause();
  undo(() => deaf.destroy());
  // Newer versions of Node.js report the reset even while the socket is paused.
  const lost = new Promise((done) => deaf.on('error', () => undefined).once('close', done));
  const slow = connect(service.port, '127.0.0.1', () => slow.write(requests)).pause();
  undo(() => slow.destroy());
  await until('both are connected', () => connections.count >= 2);
  let taken = 0;
  slow.on('data', (data) => (taken += data.length));
  while (connections.count > 1) {
    slow.resume();
    await delay(1);
    slow.pause();
    await delay(100);
  }
  deaf.resume();
  await lost;
  slow.resume();
  while (taken < 20 * 1_000_000) await once(slow, 'data');
});
