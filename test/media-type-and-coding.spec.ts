import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { converse } from './support/connection.js';
import { createTestDatabase } from './support/database.js';
import { PATIENCE_MS, until } from './support/patience.js';
import { expectError, post, type Answer, type Bytes } from './support/requests.js';
import { ServiceProcess } from './support/service-process.js';
import { countRows, rowOf, startService, TOKEN, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

const LIMIT = 4_096;
const TOO_LARGE = `The body must be at most ${LIMIT} bytes.`;

let service: TestService;
beforeAll(async () => {
  service = await startService({ env: { BODY_LIMIT: '4kb' } });
});
afterAll(() => service.stop());

const plant = (id = unusedId()) => `{"id":${id},"name":"a"}`;
/** A good body of `length` bytes. */
const plantOf = (length: number) =>
  `${plant()
    .slice(0, -1)
    .padEnd(length - 1)}}`;

/** The header lines of a good request, without those that frame its body. */
const GOOD = `Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;

const coded = Object.entries({ gzip: gzipSync, 'x-gzip': gzipSync });

type Headers = Record<string, string | undefined>;

async function expectCreated(body: Bytes, headers: Headers = {}, id?: bigint): Promise<void> {
  const answer = await post(service.port, body, headers);
  expect([answer.status, answer.text]).toEqual([200, '{"name":"a"}']);
  if (id !== undefined) expect(await rowOf(service, id)).toMatchObject({ name: 'a' });
}

async function expectRefused(body: Bytes, headers: Headers, error: number, message: string): Promise<Answer> {
  const before = await countRows(service);
  const answer = await post(service.port, body, headers);
  expectError(answer, error === 401 ? 401 : 400, error);
  expect(answer.json).toHaveProperty('message', message);
  expect(await countRows(service)).toBe(before);
  return answer;
}

function chunked(body: Bytes, chunkSize = 1_000): Buffer {
  const bytes = Buffer.from(body as string);
  const parts: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; start += chunkSize) {
    const chunk = bytes.subarray(start, start + chunkSize);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
const CHUNKED = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' };

describe('The media type', () => {
  test.each([
    'application/json',
    'Application/JSON',
    'APPLICATION/JSON;CHARSET=UTF-8',
    'application/json;',
    'application/json ; charset=utf-8',
    'application/json; version=1',
  ])('is read as RFC 9110 writes it: %s', (type) => expectCreated(plant(), { 'Content-Type': type }));

  test.each([
    ...[
      undefined,
      '',
      'json',
      'application',
      'application/',
      '/json',
      'application/*',
      '*/*',
      '"application/json"',
    ],
    ...['application/jsonx', 'application/json/x', 'application /json', 'application/json charset=utf-8'],
    ...['application/json, application/json', 'application/json,text/plain', 'text/plain, application/json'],
    ...[
      'text/json',
      'text/plain',
      'text/html',
      'text/x-json',
      'application/x-json',
      'application/javascript',
    ],
    ...['application/vnd.api+json', 'application/ld+json', 'application/problem+json', 'application/json+x'],
    ...['application/merge-patch+json', 'application/x-ndjson', 'application/json-seq', 'application/json5'],
    ...['application/xml', 'application/yaml', 'application/cbor', 'application/octet-stream'],
    ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/grpc'],
  ])('must be application/json, or the answer names it and nothing is stored: %s', async (type) => {
    const message = 'Content-Type must be application/json.';
    for (const body of [plant(), `id=${unusedId()}&name=a`, '']) {
      const answer = await expectRefused(body, { 'Content-Type': type }, 415, message);
      expect(answer.headers).toMatchObject({
        accept: 'application/json',
        'accept-encoding': 'gzip',
      });
    }
  });

  test.each(['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain'])(
    'of a form carries no token: %s',
    async (type) => {
      const multipart = ['id', 'name', 'access_token']
        .map((field) => `--x\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${TOKEN}\r\n`)
        .join('');
      for (const body of [`id=5&name=a&access_token=${TOKEN}`, `${multipart}--x--`]) {
        await expectRefused(
          body,
          { 'Content-Type': type, Authorization: undefined },
          401,
          'A bearer token is needed, in the Authorization header.',
        );
      }
    },
  );
});

describe('The content coding', () => {
  test.each(coded)('is decoded: %s', async (coding, encode) => {
    for (const spelled of [coding, coding.toUpperCase(), ` ${coding} `]) {
      const id = unusedId();
      await expectCreated(encode(plant(id)), { 'Content-Encoding': spelled }, id);
    }
    await expectCreated(chunked(encode(plant()), 7), { ...CHUNKED, 'Content-Encoding': coding });
    await expectCreated(encode(`\ufeff${plant()}`), { 'Content-Encoding': coding });
  });

  test.each(['identity', 'Identity', ''])('may be none: %j', (coding) =>
    expectCreated(plant(), { 'Content-Encoding': coding }),
  );

  test('gzip may have several members', async () => {
    const body = plant();
    const members = [body.slice(0, 5), body.slice(5)].map((part) => gzipSync(part));
    await expectCreated(Buffer.concat(members), { 'Content-Encoding': 'gzip' });
  });

  test.each([
    ...[
      'foo',
      'br',
      'deflate',
      'compress',
      'zstd',
      '*',
      'gzip;q=1',
      'gzip gzip',
      '"gzip"',
      'gzi',
      'chunked',
      'none',
    ],
    ...['gzip, gzip', 'gzip,', 'gzip, br', 'identity, gzip', 'gzip, identity', 'br,deflate,gzip'],
  ])('must be gzip, once: %s', async (coding) => {
    const message = 'Content-Encoding must be gzip or none.';
    for (const body of [plant(), gzipSync(plant()), gzipSync(gzipSync(plant()))]) {
      const answer = await expectRefused(body, { 'Content-Encoding': coding }, 415, message);
      expect(answer.headers).toMatchObject({ 'accept-encoding': 'gzip' });
    }
  });

  test('must not be in two headers', async () => {
    const body = gzipSync(plant());
    const head =
      `POST /plants HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${GOOD}` +
      'Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n' +
      `Content-Length: ${body.length}\r\n\r\n`;
    const [answer] = await converse(service.port, [head, body]);
    expectError(answer as Answer, 400, 415);
  });

  const damaged = coded.flatMap(([coding, encode]): [damage: string, coding: string, body: Buffer][] => {
    const whole = encode(plant());
    return [
      ['plain JSON', coding, Buffer.from(plant())],
      ['nothing', coding, Buffer.alloc(0)],
      ['one byte', coding, whole.subarray(0, 1)],
      ['half of it', coding, whole.subarray(0, whole.length >> 1)],
      ['all but one byte', coding, whole.subarray(0, -1)],
      ['text after it', coding, Buffer.concat([whole, Buffer.from('junk')])],
      ['one byte after it', coding, Buffer.concat([whole, Buffer.alloc(1)])],
      ['an uncoded plant after it', coding, Buffer.concat([whole, Buffer.from(plant())])],
      ['a byte before it', coding, Buffer.concat([Buffer.alloc(1), whole])],
      ['random bytes', coding, Buffer.from('5e884898da28047151d0e56f8dc62927', 'hex')],
      ['deflate', coding, deflateSync(plant())],
      ['deflate without its wrapper', coding, deflateRawSync(plant())],
      ['brotli', coding, brotliCompressSync(plant())],
    ];
  });
  test.each([
    ...damaged,
    ['a wrong checksum', 'gzip', withByteChanged(gzipSync(plant()), -8)],
    ['a wrong length', 'gzip', withByteChanged(gzipSync(plant()), -4)],
    ['a damaged second member', 'gzip', Buffer.concat([gzipSync(plant()), gzipSync('x').subarray(0, -3)])],
  ])('must be that of the body: %s as %s', (_, coding, body) =>
    expectRefused(
      body,
      { 'Content-Encoding': coding },
      400,
      'The body is not what its Content-Encoding says.',
    ),
  );

  function withByteChanged(bytes: Buffer, at: number): Buffer {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(changed.length + at) ^ 1, changed.length + at);
    return changed;
  }

  test.each(coded)('does not change the answer to a body that is no JSON: %s', async (coding, encode) => {
    const headers = { 'Content-Encoding': coding };
    await expectRefused(encode(encode(plant())), headers, 400, 'The body is not UTF-8 text.');
    await expectRefused(encode('{'), headers, 400, 'The body is not valid JSON.');
    await expectRefused(encode(''), headers, 400, 'The body is empty; it must be a JSON object.');
  });

  test.each(coded)('does not inflate 50 MB into memory: %s', async (coding, encode) => {
    const bomb = encode(Buffer.concat([Buffer.alloc(50_000_000, ' '), Buffer.from(plant())]));
    // The compressed body is below the limit, so the decoder must stop.
    const larger = await startService({ env: { BODY_LIMIT: '100kb' } });
    const used = () => process.memoryUsage().external;
    const before = used();
    let peak = before;
    const sampler = setInterval(() => (peak = Math.max(peak, used())), 1);
    for (let time = 0; time < 5; time++) {
      const answer = await post(larger.port, bomb, { 'Content-Encoding': coding });
      expectError(answer, 400, 413);
    }
    clearInterval(sampler);
    expect(peak - before).toBeLessThan(20_000_000);
    const stranger = await post(larger.port, bomb, {
      'Content-Encoding': coding,
      Authorization: undefined,
    });
    expectError(stranger, 401);
    await larger.stop();
  });
});

describe('The size limit', () => {
  test('is exact to the byte', async () => {
    await expectCreated(plantOf(LIMIT));
    await expectRefused(plantOf(LIMIT + 1), {}, 413, TOO_LARGE);
  });

  test.each([1, 100, LIMIT, LIMIT + 1])('is exact to the byte in chunks of %i', async (size) => {
    await expectCreated(chunked(plantOf(LIMIT), size), CHUNKED);
    await expectRefused(chunked(plantOf(LIMIT + 1), size), CHUNKED, 413, TOO_LARGE);
  });

  test.each(coded)('is exact to the byte after decoding: %s', async (coding, encode) => {
    await expectCreated(encode(plantOf(LIMIT)), { 'Content-Encoding': coding });
    await expectRefused(encode(plantOf(LIMIT + 1)), { 'Content-Encoding': coding }, 413, TOO_LARGE);
    const inChunks = chunked(encode(plantOf(LIMIT + 1)), 10);
    await expectRefused(inChunks, { ...CHUNKED, 'Content-Encoding': coding }, 413, TOO_LARGE);
  });

  test('applies before decoding too', async () => {
    // At level 0 gzip compresses nothing, and adds its own header.
    const stored = gzipSync(plantOf(LIMIT), { level: 0 });
    await expectRefused(stored, { 'Content-Encoding': 'gzip' }, 413, TOO_LARGE);
  });

  test.each([LIMIT + 1, 2 ** 31, Number.MAX_SAFE_INTEGER, '9223372036854775807'])(
    'applies to Content-Length, before the body arrives: %s',
    (length) => expectRefused('', { 'Content-Length': String(length) }, 413, TOO_LARGE),
  );

  test('is 1 MiB by default', async () => {
    const shipped = await startService();
    expect((await post(shipped.port, plantOf(1024 * 1024))).status).toBe(200);
    expectError(await post(shipped.port, plantOf(1024 * 1024 + 1)), 400, 413);
    await shipped.stop();
  });
});

describe('A chunked body', () => {
  const HEAD =
    `POST /plants HTTP/1.1\r\nHost: localhost\r\n${GOOD}` +
    'Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n';

  test.each([
    ['extensions', (size: string, body: string) => `${size};a=b;c="d"\r\n${body}\r\n0;e\r\n\r\n`],
    [
      'trailers',
      (size: string, body: string) => `${size}\r\n${body}\r\n0\r\nX: y\r\nAuthorization: z\r\n\r\n`,
    ],
    ['leading zeros in a size', (size: string, body: string) => `0000${size}\r\n${body}\r\n000\r\n\r\n`],
    ['a size in upper case', (size: string, body: string) => `${size.toUpperCase()}\r\n${body}\r\n0\r\n\r\n`],
  ])('may have %s', async (_, frame) => {
    const id = unusedId();
    const body = `${plant(id)}${' '.repeat(30)}`;
    const [answer] = await converse(service.port, [HEAD, frame(body.length.toString(16), body)]);
    expect(answer?.text).toBe('{"name":"a"}');
    expect(await rowOf(service, id)).toBeDefined();
  });

  test('may arrive byte by byte', async () => {
    const id = unusedId();
    const body = chunked(`{"id":${id},"name":"🌿é"}`, 3);
    const bytes = [...Buffer.from(HEAD), ...body];
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(service.port, '127.0.0.1').setNoDelay(true);
      const received: Buffer[] = [];
      socket.on('data', (data: Buffer) => received.push(data)).on('error', reject);
      socket.on('end', () => resolve(Buffer.concat(received).toString()));
      void (async () => {
        for (const byte of bytes) {
          socket.write(Uint8Array.of(byte));
          await delay(0);
        }
      })();
    });
    expect(answer).toMatch(/\{"name":"🌿é"\}$/);
    expect((await rowOf(service, id))?.name).toBe('🌿é');
  });
});

describe('Expect: 100-continue', () => {
  /** Sends the head, and the body only after 100 Continue. @returns everything that the service sent. */
  function politely(head: string, body: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(service.port, '127.0.0.1', () => socket.write(head));
      let received = '';
      socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('not ended')));
      socket.on('data', (data: Buffer) => {
        if (received === '' && data.toString().startsWith('HTTP/1.1 100 ')) socket.write(body);
        received += data.toString();
      });
      socket.on('error', reject).on('end', () => resolve(received));
    });
  }
  const head = (lines: string, expectation = '100-continue') =>
    `POST /plants HTTP/1.1\r\nHost: localhost\r\nExpect: ${expectation}\r\n${lines}\r\n`;

  test.each(['100-continue', '100-Continue'])('is answered 100 Continue: %s', async (expectation) => {
    const id = unusedId();
    const length = `Content-Length: ${plant(id).length}\r\nConnection: close\r\n`;
    const received = await politely(head(GOOD + length, expectation), plant(id));
    expect(received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*\{"name":"a"\}$/);
    expect(await rowOf(service, id)).toBeDefined();
  });

  test.each([
    ['without a token', 401, 'Content-Type: application/json\r\nContent-Length: 30\r\n'],
    ['with an unknown token', 401, 'Authorization: Bearer nope\r\nContent-Length: 30\r\n'],
    ['with another media type', 415, `Authorization: Bearer ${TOKEN}\r\nContent-Length: 30\r\n`],
    ['with another content coding', 415, `${GOOD}Content-Encoding: foo\r\nContent-Length: 30\r\n`],
    ['with too large a body', 413, `${GOOD}Content-Length: ${LIMIT + 1}\r\n`],
  ])('is refused without 100, and the connection ends: %s', async (_, error, lines) => {
    const before = await countRows(service);
    const received = await politely(head(lines), plant());
    expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${error === 401 ? 401 : 400} [^]*{"error":${error},`));
    expect(received).not.toContain(' 100 ');
    expect(received).toMatch(/^Connection: close\r$/m);
    expect(await countRows(service)).toBe(before);
  });

  test('is ignored in HTTP/1.0', async () => {
    const id = unusedId();
    const lines = `${GOOD}Expect: 100-continue\r\nContent-Length: ${plant(id).length}\r\n`;
    const [answer, ...more] = await converse(service.port, [
      `POST /plants HTTP/1.0\r\n${lines}\r\n`,
      plant(id),
    ]);
    expect([answer?.status, more.length]).toEqual([200, 0]);
    expect(await rowOf(service, id)).toBeDefined();
  });
});

/** Waits until no connection is left. */
async function expectNoSockets(): Promise<void> {
  const count = () =>
    promisify<number>((done) => {
      service.app.getHttpServer().getConnections((error: Error | null, open: number) => done(error, open));
    })();
  await until('no connection is left', async () => (await count()) === 0);
}

describe('A client that keeps sending after its refusal', () => {
  const HEAD = 'POST /plants HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n';

  test.each([
    ['too large', 413, `${GOOD}Content-Length: 9999999\r\n\r\n`],
    [
      'too large, in chunks',
      413,
      `${GOOD}Transfer-Encoding: chunked\r\n\r\nfffff\r\n${' '.repeat(LIMIT + 1)}`,
    ],
    ['without a token', 401, 'Content-Length: 9999999\r\n\r\n'],
    ['of another media type', 415, `Authorization: Bearer ${TOKEN}\r\nContent-Length: 9999999\r\n\r\n`],
    ['with an unknown expectation', 417, `${GOOD}Expect: tea\r\nContent-Length: 9999999\r\n\r\n`],
    ['with two Hosts', 400, `Host: other\r\n${GOOD}Content-Length: 9999999\r\n\r\n`],
    ['with headers too large', 431, `X: ${'a'.repeat(20_000)}\r\n`],
    ['malformed', 400, 'X Y: z\r\n'],
  ])('is not reset before it can read the answer: %s', async (_, error, rest) => {
    const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
    const failures: Error[] = [];
    let received = '';
    socket.on('error', (failure) => failures.push(failure));
    socket.on('data', (data: Buffer) => (received += data.toString()));
    socket.write(HEAD + rest);
    await once(socket, 'end');
    // If the service had closed both directions, it would answer this with a reset, and the client could lose the answer.
    for (let time = 0; time < 5; time++) {
      socket.write('more');
      await delay(20);
    }
    expect(failures).toEqual([]);
    expect(received).toMatch(new RegExp(`^HTTP/1.1 4[^]*{"error":${error},`));
    await expectNoSockets();
    socket.destroy();
  });
});

describe('A client that goes away', () => {
  const undo = undoAfterEach();
  const HEAD = `POST /plants HTTP/1.1\r\nHost: localhost\r\n${GOOD}`;
  const CASES: [where: string, bytes: () => string][] = [
    ['before its first byte', () => ''],
    ['in the request line', () => 'POST /pl'],
    ['in the headers', () => HEAD],
    ['before the body', () => `${HEAD}Content-Length: 500\r\n\r\n`],
    ['in the body', () => `${HEAD}Content-Length: 500\r\n\r\n{"id":1`],
    ['one byte before the end', () => `${HEAD}Content-Length: 101\r\n\r\n${plantOf(100)}`],
    ['in a chunk', () => `${HEAD}Transfer-Encoding: chunked\r\n\r\n65\r\n${plantOf(100)}`],
    ['before the last chunk', () => `${HEAD}Transfer-Encoding: chunked\r\n\r\n64\r\n${plantOf(100)}\r\n`],
    ['in a coded body', () => `${HEAD}Content-Encoding: gzip\r\nContent-Length: 500\r\n\r\n\x1f\x8b`],
    ['in too large a body', () => `${HEAD}Content-Length: 5000\r\n\r\n{"id":1`],
    [
      'in a body without a token',
      () => 'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{"id":1',
    ],
    ['before 100 Continue', () => `${HEAD}Expect: 100-continue\r\nContent-Length: 500\r\n\r\n`],
    ['in an unknown method', () => 'POTS /plants HTTP/1.1\r\n'],
  ];

  /** Sends the bytes, and ends (FIN) or resets (RST) the connection. */
  function leave(
    bytes: string,
    how: 'end' | 'resetAndDestroy',
    afterMs: number,
    port = service.port,
  ): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(bytes, 'latin1', () => setTimeout(() => socket[how](), afterMs));
      });
      socket.on('data', () => undefined).on('error', () => undefined);
      socket.on('close', () => resolve());
    });
  }

  test.each(CASES)('%s leaves no row, no socket and no error behind', async (_, bytes) => {
    const before = await countRows(service);
    for (const how of ['end', 'resetAndDestroy'] as const) {
      for (const afterMs of [0, 20])
        await Promise.all(Array.from({ length: 50 }, () => leave(bytes(), how, afterMs)));
    }
    await expectNoSockets();
    expect(await countRows(service)).toBe(before);
    expect(service.logs()).not.toMatch(/"level":[456]0/);
    await expectCreated(plant());
  });

  test('before its answer may repeat the request, and its plant is stored', async () => {
    const plants = Array.from({ length: 50 }, () => unusedId()).map((id) => ({ id, body: plant(id) }));
    await Promise.all(
      plants.map(({ body }) =>
        leave(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`, 'resetAndDestroy', 0),
      ),
    );
    for (const { id, body } of plants) await expectCreated(body, {}, id);
    expect(service.logs()).not.toMatch(/"level":[456]0/);
  });

  test('before its pipelined requests are read does not delay a stop', async () => {
    const database = await createTestDatabase();
    undo(() => database.drop());
    const stopping = await ServiceProcess.start({ ...database.env, LOG_LEVEL: 'info' });
    undo(() => stopping.end('SIGKILL'));
    const requests = Array.from({ length: 20 }, () => `${HEAD}Content-Length: 100\r\n\r\n${plantOf(100)}`);
    for (let time = 0; time < 5; time++) await leave(requests.join(''), 'resetAndDestroy', 0, stopping.port);
    expect(await stopping.end('SIGTERM')).toEqual({ code: 0, signal: null });
    // The stop did not wait for these connections until its time limit, or it would have cut them.
    expect(stopping.output).toMatch(/"cut":0,/);
  });

  test('in the head but still reads is told that its request is incomplete', async () => {
    const [answer] = await converse(service.port, ['POST /plants HTTP/1.1\r\nHost: a\r\n'], {
      thenEnd: true,
    });
    expectError(answer as Answer, 400);
    expect(answer?.json).toHaveProperty('message', 'The request ended before it was complete.');
  });

  test.each(['in the body', 'in a chunk', 'before the last chunk', 'in a coded body'])(
    'but still reads is told that its request is incomplete: %s',
    async (where) => {
      const bytes = (CASES.find(([name]) => name === where) as (typeof CASES)[number])[1]();
      const [answer] = await converse(service.port, [bytes], { thenEnd: true });
      expectError(answer as Answer, 400);
      expect(answer?.json).toHaveProperty('message', 'The request ended before it was complete.');
    },
  );
});
