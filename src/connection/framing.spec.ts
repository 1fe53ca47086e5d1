import { createServer, type IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate as immediately } from 'node:timers/promises';
import { Failure } from '../errors/failure.js';
import { Framing } from './framing.js';

const STREAMS = 2_000;
const BODY_LIMIT = 1_000_000;

const BODY = '{"id":1,"name":"a"}';
const GOOD = [
  `POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  'POST /plants HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\n{"id"\r\ne\r\n:1,"name":"a"}\r\n0\r\nX: y\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
  `POST http://a:1/plants?x=y HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length:\t${BODY.length} \t\r\n\r\n${BODY}`,
];
const DAMAGE = [
  ...[
    '\r',
    '\n',
    '\r\n',
    '\t',
    ' ',
    ':',
    ';',
    '=',
    '"',
    '0',
    '1',
    'f',
    '\0',
    '\x7f',
    '\xff',
    '#',
    '/',
    '*',
    ',',
  ],
  ...[
    'chunked',
    'Content-Length: 5\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Upgrade: x\r\n',
    'HTTP/1.1',
    'upgrade',
  ],
  ...['Connection: close\r\n', 'close', 'A'],
];

/** Pseudo-random numbers, the same in every run. */
function* numbers(): Generator<number, never> {
  for (let state = 1; ;) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    yield state >> 8;
  }
}
const sequence = numbers();
const below = (bound: number) => sequence.next().value % bound;
const oneOf = (choices: string[]) => choices[below(choices.length)] as string;

function damaged(text: string): string {
  const [at, other] = [below(text.length + 1), below(text.length + 1)];
  switch (below(4)) {
    case 0:
      return text.slice(0, at) + oneOf(DAMAGE) + text.slice(at);
    case 1:
      return text.slice(0, at) + text.slice(at + 1 + below(3));
    case 2:
      return text.slice(0, at) + oneOf(DAMAGE) + text.slice(at + 1);
    default:
      return text.slice(0, other) + text.slice(at);
  }
}

function stream(): string {
  return Array.from({ length: 1 + below(3) }, () => {
    let request = oneOf(GOOD);
    for (let count = below(4); count > 0; count--) request = damaged(request);
    return request;
  }).join('');
}

/** @returns each complete request that Framing passes on, and whether it refused something. */
function read(text: string, pieceSize: number): { requests: Buffer[]; isRefused: boolean } {
  const framing = new Framing(BODY_LIMIT);
  const requests: Buffer[] = [];
  let passed: Buffer[] = [];
  try {
    for (let at = 0; at < text.length; at += pieceSize) {
      let bytes: Buffer | undefined = Buffer.from(text.slice(at, at + pieceSize), 'latin1');
      for (; bytes !== undefined; bytes = framing.rest) {
        const safe = framing.read(bytes);
        if (safe !== undefined) passed.push(safe);
        if (framing.isBetweenRequests && passed.length > 0) {
          requests.push(Buffer.concat(passed));
          passed = [];
        }
      }
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { requests, isRefused: true };
  }
  return { requests, isRefused: false };
}

/** @returns how many requests Node.js's parser finds in the bytes, how many of them are complete, and its error. */
async function parse(bytes: Buffer): Promise<{ begun: number; whole: number; error: string | undefined }> {
  const found: { begun: number; whole: number; error: string | undefined } = {
    begun: 0,
    whole: 0,
    error: undefined,
  };
  const server = createServer({ requireHostHeader: false, maxHeaderSize: 65_536 });
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.on(event, (request: IncomingMessage) => {
      found.begun++;
      request.resume().on('end', () => found.whole++);
    });
  }
  server.on('clientError', (error: NodeJS.ErrnoException) => (found.error = error.code));
  const socket = Object.assign(new Duplex({ read: () => undefined, write: (_, __, done) => done() }), {
    setTimeout: () => undefined,
  });
  server.emit('connection', socket);
  socket.push(bytes);
  await immediately();
  await immediately();
  socket.destroy();
  return found;
}

test('Every request that Framing passes on is one complete request to Node.js too', async () => {
  let refused = 0;
  for (let count = 0; count < STREAMS; count++) {
    const text = stream();
    const { requests, isRefused } = read(text, text.length);
    for (const pieceSize of [1, 7]) {
      const cut = read(text, pieceSize);
      expect([text, cut.requests.length, cut.isRefused]).toEqual([text, requests.length, isRefused]);
    }
    for (const request of requests) {
      const shown = request.toString('latin1');
      expect([shown, await parse(request)]).toEqual([shown, { begun: 1, whole: 1, error: undefined }]);
    }
    if (isRefused) refused++;
  }
  // If all or none were refused, the test would prove nothing.
  expect(refused).toBeGreaterThan(STREAMS / 5);
  expect(refused).toBeLessThan(STREAMS - STREAMS / 5);
});

test('Small chunks are joined', () => {
  const framing = new Framing(BODY_LIMIT);
  const head = Buffer.from('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  framing.read(head);
  const joined = framing.read(Buffer.from(`${'1\r\nx\r\n'.repeat(10_000)}0\r\n\r\n`));
  expect(joined?.toString()).toBe(`00002710\r\n${'x'.repeat(10_000)}\r\n0\r\n\r\n`);
});
