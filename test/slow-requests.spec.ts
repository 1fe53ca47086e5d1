import { connect } from 'node:net';
import { createTestDatabase } from './support/database.js';
import { expectError, parseAnswer, post } from './support/requests.js';
import { ServiceProcess } from './support/service-process.js';
import { countRows, startService, TOKEN, type TestService } from './support/service.js';

/** In place of the shipped limits, which the first test looks at; they are enforced once a second. */
const LIMITS = { headersTimeout: 500, requestTimeout: 1_000 };
const CUT_MS = 4_000;
const AT_ONCE_MS = 500;
const TRICKLE_MS = 50;

const LINE = 'POST /plants HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
const AUTHORIZED = `${LINE}Authorization: Bearer ${TOKEN}\r\n`;

/** What is sent at once, and what is then sent again and again, if anything. */
const SLOW: Record<
  string,
  { start: string; trickle?: string; status: number; error: number; atOnce?: true }
> = {
  'a connection that stays silent': { start: '', status: 408, error: 408 },
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
  'a body that stops, without a token': {
    start: `${LINE}Content-Length: 99\r\n\r\n{"id":`,
    status: 401,
    error: 401,
    atOnce: true,
  },
  'a body that trickles, without a token': {
    start: `${LINE}Content-Length: 9999\r\n\r\n`,
    trickle: ' ',
    status: 401,
    error: 401,
    atOnce: true,
  },
  'a body that trickles and is too large': {
    start: `${AUTHORIZED}Content-Length: 99999999\r\n\r\n`,
    trickle: ' ',
    status: 400,
    error: 413,
    atOnce: true,
  },
  'a body that trickles to no operation': {
    start: 'PUT /plants HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n',
    trickle: ' ',
    status: 405,
    error: 405,
    atOnce: true,
  },
};

/** Sends it and goes on until the service ends the connection. */
function send(port: number, { start, trickle }: { start: string; trickle?: string }): Promise<Cut> {
  return new Promise((resolve) => {
    const begun = Date.now();
    const chunks: Buffer[] = [];
    let answeredMs = Infinity;
    const socket = connect(port, '127.0.0.1', () => socket.write(start));
    const timer = setInterval(() => trickle !== undefined && socket.write(trickle), TRICKLE_MS);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      answeredMs = Math.min(answeredMs, Date.now() - begun);
    });
    // Its last bytes may meet a connection that is closed.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      resolve({ received: Buffer.concat(chunks), answeredMs, cutMs: Date.now() - begun });
    });
  });
}

interface Cut {
  received: Buffer;
  answeredMs: number;
  cutMs: number;
}

describe('A slow request', () => {
  let service: TestService;
  let cuts: Map<string, Promise<Cut>>;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  test('may take 10 seconds for its headers and 30 for all of it', () => {
    const { headersTimeout, requestTimeout } = service.app.getHttpServer();
    expect({ headersTimeout, requestTimeout }).toEqual({ headersTimeout: 10_000, requestTimeout: 30_000 });
    Object.assign(service.app.getHttpServer(), LIMITS);
    cuts = new Map(Object.entries(SLOW).map(([name, request]) => [name, send(service.port, request)]));
  });

  test.each(Object.entries(SLOW))('is answered and cut: %s', async (name, { status, error, atOnce }) => {
    const { received, answeredMs, cutMs } = (await cuts.get(name)) as Cut;
    expectError(parseAnswer(received), status, error);
    expect(answeredMs).toBeLessThan(atOnce ? AT_ONCE_MS : CUT_MS);
    expect(cutMs).toBeLessThan(CUT_MS);
  });

  test('stores nothing and leaves the service as it was', async () => {
    expect(await countRows(service)).toBe(0);
    expect((await post(service.port, '{"id":1,"name":"a"}')).status).toBe(200);
  });
});

test('Slow requests do not hold up a stop', async () => {
  const database = await createTestDatabase();
  const service = await ServiceProcess.start(database.env);
  const held = Object.values(SLOW).map((request) => send(service.port, request));
  await new Promise((resolve) => setTimeout(resolve, 200));
  const begun = Date.now();
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(Date.now() - begun).toBeLessThan(5_000);
  await Promise.all(held);
  await database.drop();
});
