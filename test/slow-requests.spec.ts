import { connect } from 'node:net';
import { Connections } from '../src/connection/connections.js';
import { createTestDatabase } from './support/database.js';
import { until } from './support/patience.js';
import { expectError, parseAnswer, post } from './support/requests.js';
import { ServiceProcess } from './support/service-process.js';
import { countRows, startService, TOKEN, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

/** Replaces the default limits after the first test has checked them. */
const SHORT = { head: 500, request: 1_000, linger: 1_000, unused: 500 };
const TRICKLE_MS = 50;

const LINE = 'POST /plants HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
const AUTHORIZED = `${LINE}Authorization: Bearer ${TOKEN}\r\n`;

interface Slow {
  /** Is sent at once. */
  start: string;
  /** Is sent repeatedly. */
  trickle?: string;
  status: number;
  error: number;
}

const SLOW: Record<string, Slow> = {
  'a request line that stops': { start: 'POST /pl', status: 408, error: 408 },
  'headers that stop': { start: AUTHORIZED, status: 408, error: 408 },
  'headers that trickle': { start: AUTHORIZED, trickle: 'x', status: 408, error: 408 },
  'a body that stops': { start: `${AUTHORIZED}Content-Length: 99\r\n\r\n{"id":`, status: 400, error: 408 },
  'a body that trickles': {
    start: `${AUTHORIZED}Content-Length: 9999\r\n\r\n`,
    trickle: ' ',
    status: 400,
    error: 408,
  },
  'a chunked body that trickles': {
    start: `${AUTHORIZED}Transfer-Encoding: chunked\r\n\r\n`,
    trickle: '1\r\n \r\n',
    status: 400,
    error: 408,
  },
};

/** These are answered before the time limit, which would make the error 408. */
const REFUSED: Record<string, Slow> = {
  'a body that stops, without a token': {
    start: `${LINE}Content-Length: 99\r\n\r\n{"id":`,
    status: 401,
    error: 401,
  },
  'a body that trickles, without a token': {
    start: `${LINE}Content-Length: 99999\r\n\r\n`,
    trickle: ' ',
    status: 401,
    error: 401,
  },
  'a body that trickles and is too large': {
    start: `${AUTHORIZED}Content-Length: 99999999\r\n\r\n`,
    trickle: ' ',
    status: 400,
    error: 413,
  },
  'a body that trickles to no operation': {
    start: 'PUT /plants HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n',
    trickle: ' ',
    status: 405,
    error: 405,
  },
};
const ALL = { ...SLOW, ...REFUSED };

/** Sends a slow request until the service ends the connection. @returns what the service sent. */
function send(port: number, { start, trickle }: { start: string; trickle?: string }): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let timer: NodeJS.Timeout | undefined;
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(start);
      if (trickle !== undefined) timer = setInterval(() => socket.write(trickle), TRICKLE_MS);
    });
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    // Its last bytes may reach a closed connection.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      resolve(Buffer.concat(chunks));
    });
  });
}

const undo = undoAfterEach();

describe('A slow request', () => {
  let service: TestService;
  let received: Map<string, Promise<Buffer>>;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  test('may take 10 s for its headers and 30 s in all; a connection may be unused for 75 s', () => {
    const { limits } = service.app.get(Connections);
    expect(limits).toEqual({
      head: 10_000,
      request: 30_000,
      stalledResponse: 30_000,
      linger: 10_000,
      lingerSilent: 1_000,
      unused: 75_000,
    });
    Object.assign(limits, SHORT);
    received = new Map(Object.entries(ALL).map(([name, request]) => [name, send(service.port, request)]));
  });

  test.each(Object.entries(ALL))('is answered, and ends: %s', async (name, { status, error }) => {
    expectError(parseAnswer((await received.get(name)) as Buffer), status, error);
  });

  test.each(['', '\r\n'])(
    'that has not begun gets no answer, and its connection is closed: %j',
    async (start) => {
      expect(String(await send(service.port, { start }))).toBe('');
    },
  );

  test('has a log line with its status and error', () => {
    const lines = service
      .logs()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
      .map((line) => JSON.parse(line) as Logged);
    const logged = lines.map(({ status, error, client }) => ({ status, error, client })).sort(byError);
    const expected = Object.values(ALL).map(({ status, error }) => ({ status, error, client: '127.0.0.1' }));
    expect(logged).toEqual(expected.sort(byError));
  });

  test('stores nothing and does not stop the service', async () => {
    expect(await countRows(service)).toBe(0);
    expect((await post(service.port, '{"id":1,"name":"a"}')).status).toBe(200);
  });

  test('that goes on after its answer is read for a while, and then the connection is closed', async () => {
    const { start, trickle = '' } = REFUSED['a body that trickles, without a token'] as Slow;
    const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
    undo(() => socket.destroy());
    // It is never silent, so that only the limit in total ends it.
    const timer = setInterval(() => socket.write(trickle), TRICKLE_MS);
    undo(() => clearInterval(timer));
    socket
      .on('error', () => undefined)
      .resume()
      .write(start);
    await until('the connection is closed', () => socket.destroyed);
  });
});

interface Logged {
  status: number;
  error?: number | undefined;
  client: string;
}

function byError(a: Logged, b: Logged): number {
  return (a.error ?? 0) - (b.error ?? 0) || a.status - b.status;
}

test('Slow requests do not delay a stop', async () => {
  const database = await createTestDatabase();
  undo(() => database.drop());
  const service = await ServiceProcess.start({ ...database.env, LOG_LEVEL: 'info' });
  undo(() => service.end('SIGKILL'));
  const held = Object.values(ALL).map((request) => send(service.port, request));
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
  // The stop did not wait for them until its time limit, or it would have cut them.
  expect(service.output).toMatch(/"cut":0,/);
  await Promise.all(held);
});
