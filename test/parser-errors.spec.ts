import { converse } from './support/connection.js';
import { expectError, post, type Answer, type Bytes } from './support/requests.js';
import { countRows, rowOf, startService, TOKEN, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const HOST = 'Host: localhost\r\n';
const GOOD = `Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const LINE = 'POST /plants HTTP/1.1\r\n';

const plant = (id = unusedId()) => `{"id":${id},"name":"a"}`;
/** Every body in this file has this length, because header lines below spell it out. */
const LENGTH = 100;
const HEX_LENGTH = LENGTH.toString(16);
const body = (id = unusedId()) => plant(id).padEnd(LENGTH);

/** A whole and good request. */
const create = (id = unusedId(), lines = '') =>
  `${LINE}${HOST}${GOOD}${lines}Content-Length: ${LENGTH}\r\n\r\n${body(id)}`;
/** A create with these lines instead of its Content-Length. */
const withLines = (lines: string, content = body()) => `${LINE}${HOST}${GOOD}${lines}\r\n${content}`;
const withChunks = (content: string) => withLines('Transfer-Encoding: chunked\r\n', content);
const inOneChunk = () => `${HEX_LENGTH}\r\n${body()}\r\n0\r\n\r\n`;
/** A create with this request line, and with this Host if it is given. */
const withStart = (line: string, host = HOST) =>
  `${line}\r\n${host}${GOOD}Content-Length: ${LENGTH}\r\n\r\n${body()}`;
const withHeader = (line: string | undefined) => withLines(`${line}\r\nContent-Length: ${LENGTH}\r\n`);

const LENGTH_RULE = 'Content-Length must be one number, without Transfer-Encoding.';
const CODING_RULE = 'Transfer-Encoding must be chunked, once, without Content-Length.';
const CHUNK_END = 'A chunk of the body does not end where its size says.';
const CHUNK_SIZE = 'The size of a chunk of the body is malformed.';
const HEADER = 'A header is malformed.';
const METHOD = 'The request does not start with an HTTP method.';
const TARGET = 'The request target must be a path, with or without a query.';
const VERSION = 'The HTTP version must be 1.1 or 1.0.';
const START =
  'The request must start with a line of a method, a target and HTTP/1.1 or HTTP/1.0, with one space between them.';
const HOST_RULE = 'Host must be a host name or address, with or without a port.';

type Case = [what: string, request: () => Bytes, message: string];

const LENGTHS: Case[] = [
  ['two lengths', () => withLines(`Content-Length: ${LENGTH}\r\nContent-Length: 5\r\n`), LENGTH_RULE],
  ['one length twice', () => withLines(`Content-Length: ${LENGTH}\r\n`.repeat(2)), LENGTH_RULE],
  ...[
    `${LENGTH}, ${LENGTH}`,
    `${LENGTH},5`,
    `+${LENGTH}`,
    `-${LENGTH}`,
    `${LENGTH}.0`,
    '0x64',
    '1e2',
    '',
    'all',
    '1 00',
  ].map((length): Case => [
    `the length "${length}"`,
    () => withLines(`Content-Length: ${length}\r\n`),
    LENGTH_RULE,
  ]),
  ['a length of 24 digits', () => withLines(`Content-Length: ${'9'.repeat(24)}\r\n`), LENGTH_RULE],
  ['a length that wraps', () => withLines(`Content-Length: ${2n ** 64n + BigInt(LENGTH)}\r\n`), LENGTH_RULE],
];

const CODINGS: Case[] = [
  [
    'a length and chunks',
    () => withLines(`Content-Length: ${LENGTH}\r\nTransfer-Encoding: chunked\r\n`, inOneChunk()),
    CODING_RULE,
  ],
  [
    'chunks and a length',
    () => withLines(`Transfer-Encoding: chunked\r\nContent-Length: ${LENGTH}\r\n`, inOneChunk()),
    LENGTH_RULE,
  ],
  [
    'identity and a length',
    () => withLines(`Transfer-Encoding: identity\r\nContent-Length: ${LENGTH}\r\n`),
    CODING_RULE,
  ],
  ['chunked twice', () => withLines('Transfer-Encoding: chunked\r\n'.repeat(2), inOneChunk()), CODING_RULE],
  ...['chunked, chunked', 'chunked, identity', 'chunked,gzip'].map((coding): Case => [
    coding,
    () => withLines(`Transfer-Encoding: ${coding}\r\n`, inOneChunk()),
    CODING_RULE,
  ]),
  ...[
    'gzip, chunked',
    'identity, chunked',
    'identity,chunked',
    'xchunked',
    'gzip',
    'identity',
    'cow',
    '',
    '"chunked"',
    'chunked;q=1',
    'chunkedchunked',
  ].map((coding): Case => [
    `the coding "${coding}"`,
    () => withLines(`Transfer-Encoding: ${coding}\r\n`, inOneChunk()),
    CODING_RULE,
  ]),
  [
    'chunks in HTTP/1.0',
    () =>
      create()
        .replace('HTTP/1.1', 'HTTP/1.0')
        .replace(/Content-Length: .*[^]*/, `Transfer-Encoding: chunked\r\n\r\n${inOneChunk()}`),
    'An HTTP/1.0 request must not have Transfer-Encoding.',
  ],
  ['white space before the colon', () => withLines('Transfer-Encoding : chunked\r\n', inOneChunk()), HEADER],
  [
    'a vertical tab before the coding',
    () => withLines('Transfer-Encoding:\x0bchunked\r\n', inOneChunk()),
    HEADER,
  ],
  [
    'the coding on a line of its own',
    () => withLines('Transfer-Encoding:\r\n chunked\r\n', inOneChunk()),
    HEADER,
  ],
  [
    'a bare CR after the coding',
    () => withLines('Transfer-Encoding: chunked\rX: y\r\n', inOneChunk()),
    HEADER,
  ],
];

const CHUNKS: Case[] = [
  ...['zz', '-64', '+64', '0x64', '64h', ' 64', '64 ', '6 4', '10000000000000000', '1'.repeat(40)].map(
    (size): Case => [
      `the chunk size "${size}"`,
      () => withChunks(`${size}\r\n${body()}\r\n0\r\n\r\n`),
      CHUNK_SIZE,
    ],
  ),
  ...['64;', '64;;a', '64;a=', '64;=b', '64; a', '64;a b', '64;a="b', '64;a="\x01"', '64;a="b"c', '64\t'].map(
    (size): Case => [
      `the chunk extension "${size}"`,
      () => withChunks(`${size}\r\n${body()}\r\n0\r\n\r\n`),
      CHUNK_SIZE,
    ],
  ),
  [
    'an empty extension of the last chunk',
    () => withChunks(`${HEX_LENGTH}\r\n${body()}\r\n0;\r\n\r\n`),
    CHUNK_SIZE,
  ],
  [
    'Transfer-Encoding as a trailer',
    () => withChunks(`${HEX_LENGTH}\r\n${body()}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n`),
    LENGTH_RULE,
  ],
  ['no chunk size', () => withChunks(`\r\n${body()}\r\n0\r\n\r\n`), CHUNK_SIZE],
  ['a chunk larger than its size', () => withChunks(`5\r\n${body()}\r\n0\r\n\r\n`), CHUNK_END],
  [
    'a chunk smaller than its size',
    () => withChunks(`${(LENGTH + 4).toString(16)}\r\n${body()}\r\n0\r\n\r\n`),
    CHUNK_END,
  ],
  ['no line end after a chunk', () => withChunks(`${HEX_LENGTH}\r\n${body()}0\r\n\r\n`), CHUNK_END],
  ['LF as line ends', () => withChunks(`${HEX_LENGTH}\n${body()}\n0\n\n`), CHUNK_SIZE],
  ['CR as line ends', () => withChunks(`${HEX_LENGTH}\r${body()}\r0\r\r`), CHUNK_SIZE],
  [
    'a NUL in a chunk extension',
    () => withChunks(`${HEX_LENGTH};a=\0\r\n${body()}\r\n0\r\n\r\n`),
    CHUNK_SIZE,
  ],
  ['a bare LF in a chunk extension', () => withChunks(`${HEX_LENGTH};a\n${body()}\r\n0\r\n\r\n`), CHUNK_SIZE],
  [
    'Content-Length as a trailer',
    () => withChunks(`${HEX_LENGTH}\r\n${body()}\r\n0\r\nContent-Length: 5\r\n\r\n`),
    LENGTH_RULE,
  ],
  ['a malformed trailer', () => withChunks(`${HEX_LENGTH}\r\n${body()}\r\n0\r\nX y: z\r\n\r\n`), HEADER],
];

const HEADERS: Case[] = [
  ...['\0', '\x01', '\b', '\x0b', '\f', '\x1b', '\x7f'].map((byte): Case => [
    `the byte ${byte.charCodeAt(0)} in a header`,
    () => withHeader(`X: a${byte}b`),
    HEADER,
  ]),
  ...['X Y: a', 'X\xe4: a', 'X\0: a', ': a', 'X', 'X(): a', '"X": a', 'X\t: a', 'X[]: a'].map(
    (line): Case => [`the header "${line}"`, () => withHeader(line), HEADER],
  ),
  ['a bare CR in a header', () => withHeader('X: a\rb'), HEADER],
  ['a bare CR as the end of a header', () => withHeader('X: a\rY: b'), HEADER],
  ['a folded header', () => withHeader('X: a\r\n b'), HEADER],
  [
    'white space before the first header',
    () => `${LINE} X: a\r\n${HOST}${GOOD}Content-Length: ${LENGTH}\r\n\r\n${body()}`,
    HEADER,
  ],
  ['LF as line ends', () => create().replaceAll('\r\n', '\n'), START],
];

const HOSTS: Case[] = [
  ['no Host', () => withStart('POST /plants HTTP/1.1', ''), 'Host is missing.'],
  [
    'two Hosts',
    () => withStart('POST /plants HTTP/1.1', `${HOST}Host: other\r\n`),
    'Host must be sent once.',
  ],
  ['one Host twice', () => withStart('POST /plants HTTP/1.1', HOST.repeat(2)), 'Host must be sent once.'],
  [
    'two Hosts in HTTP/1.0',
    () => withStart('POST /plants HTTP/1.0', HOST.repeat(2)),
    'Host must be sent once.',
  ],
  ...[
    'a b',
    'a/b',
    'a@b',
    'a?b',
    'a#b',
    'http://a',
    'a:b',
    'a:80:80',
    'a,b',
    'a:123456',
    '[::1',
    '::1',
    '[::g]',
    '\xe4',
    '"a"',
    '<a>',
    'a\\b',
    // RFC 3986's sub-delims, which no real host has.
    ...['a!b', 'a$b', 'a&b', "a'b", 'a(b', 'a)b', 'a*b', 'a+b', 'a;b', 'a=b'],
  ].map((host): Case => [
    `the Host "${host}"`,
    () => withStart('POST /plants HTTP/1.1', `Host: ${host}\r\n`),
    HOST_RULE,
  ]),
  ['two media types', () => withHeader('Content-Type: text/plain'), 'Content-Type must be sent once.'],
  [
    'one media type twice',
    () => withHeader('content-type: application/json'),
    'Content-Type must be sent once.',
  ],
];

const REQUEST_LINES: Case[] = [
  ...[
    'FOO',
    'post',
    'Post',
    'P',
    'POSTS',
    'PO ST',
    '',
    '"POST"',
    'POST\t/plants',
    '\x16\x03\x01',
    '\xff',
    '\0',
  ].map((method): Case => [`the method "${method}"`, () => withStart(`${method} /plants HTTP/1.1`), METHOD]),
  ...[
    'plants',
    '\\plants',
    'javascript:alert(1)',
    '/plants\xe4',
    '/plants\t',
    '/plants\x7f',
    '/\0',
    '?x',
    '%2Fplants',
    '/plants#x',
    '/plants?x#y',
    '/#',
    'ftp://localhost/plants',
    'file:///plants',
    'http:/plants',
    'http:///plants',
    'http://[/plants',
    'http://a:b/plants',
    'http://u@a/plants',
    'http://a:123456/plants',
  ].map((target): Case => [`the target "${target}"`, () => withStart(`POST ${target} HTTP/1.1`), TARGET]),
  ...[
    'POST  /plants HTTP/1.1',
    'POST /plants  HTTP/1.1',
    'POST /plants HTTP/1.1 ',
    'POST /plants\tHTTP/1.1',
    'POST /plants HTTP/1.1\t',
    'POST /plants HTTP/1.1\r',
  ].map((line): Case => [`the line ${JSON.stringify(line)}`, () => withStart(line), START]),
  ...[' POST /plants HTTP/1.1', '\nPOST /plants HTTP/1.1', '\rPOST /plants HTTP/1.1', 'GET\0 / HTTP/1.1'].map(
    (line): Case => [`the line ${JSON.stringify(line)}`, () => withStart(line), METHOD],
  ),
  ['a space in the target', () => withStart('POST /pla nts HTTP/1.1'), START],
  ...['HTTP/2.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/9.9'].map((version): Case => [
    version,
    () => withStart(`POST /plants ${version}`),
    VERSION,
  ]),
  ...['HTTP/1', 'HTTP/1.10', 'HTTP/11', 'HTTP/1,1', 'HTTP/ 1.1', 'HTTP/1.1 x'].map((version): Case => [
    version,
    () => withStart(`POST /plants ${version}`),
    START,
  ]),
  ...[
    'http/1.1',
    'HTCPCP/1.0',
    'HTTPS/1.1',
    'RTSP/1.1',
    'ICE/1.1',
    'RTSP/1.0',
    'HTTP/1.1/1.1',
    'xHTTP/1.1',
  ].map((version): Case => [version, () => withStart(`POST /plants ${version}`), START]),
  ['no version', () => withStart('POST /plants'), START],
  ['no version and no header', () => 'GET /health/live\r\n\r\n', START],
  ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', METHOD],
  ['the start of TLS', () => Buffer.from('16030100f1010000ed0303', 'hex'), METHOD],
];

/** The ids of creates that were sent after a refused request. They must not be processed. */
const behind: bigint[] = [];
function createBehind(): string {
  const id = unusedId();
  behind.push(id);
  return create(id);
}

/** Sends the request with a good create after it, and expects one answer: this refusal. */
async function expectRefused(request: Bytes, status: number, error: number, message: string): Promise<void> {
  const before = await countRows(service);
  const answers = await converse(service.port, [Buffer.concat([toBytes(request), toBytes(createBehind())])]);
  expect(answers).toHaveLength(1);
  expectError(answers[0] as Answer, status, error);
  expect(answers[0]?.json).toHaveProperty('message', message);
  expect(answers[0]?.headers).toHaveProperty('connection', 'close');
  expect(await countRows(service)).toBe(before);
}
const toBytes = (bytes: Bytes) => (typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);

describe.each([
  ['A length of the body', LENGTHS],
  ['A transfer coding', CODINGS],
  ['A chunk', CHUNKS],
  ['A header', HEADERS],
  ['A header that must be sent once', HOSTS],
  ['A request line', REQUEST_LINES],
])('%s that HTTP does not allow', (_, cases) => {
  test.each(cases)('is refused and ends the connection: %j', (__, request, message) =>
    expectRefused(request(), 400, 400, message),
  );
});

describe('Large headers', () => {
  const TOO_LARGE = 'The request line and headers are too large.';
  const FRAMING = 'The sizes, extensions and trailers of the chunks are too large.';

  test.each([
    ['one header', () => withHeader(`X: ${'a'.repeat(20_000)}`)],
    ['a header name', () => withHeader(`${'X'.repeat(20_000)}: a`)],
    [
      'many headers',
      () => withHeader(Array.from({ length: 2_000 }, (_, n) => `X-Header-${n}: a`).join('\r\n')),
    ],
    ['the target', () => withStart(`POST /plants?${'a'.repeat(20_000)} HTTP/1.1`)],
    ['one header of 3 MB', () => withHeader(`X: ${'a'.repeat(3_000_000)}`)],
  ])('are answered 431: %s', (_, request) => expectRefused(request(), 431, 431, TOO_LARGE));

  test('are all read if they fit, however many they are', async () => {
    const many = Array.from({ length: 2_500 }, () => 'a:').join('\r\n');
    const id = unusedId();
    const [answer] = await converse(service.port, [create(id, `${many}\r\nConnection: close\r\n`)]);
    expect(answer?.status).toBe(200);
    expect(await rowOf(service, id)).toBeDefined();
    const [refusal] = await converse(service.port, [
      create(unusedId(), `Connection: close\r\n${many}\r\nAuthorization: Bearer other\r\n`),
    ]);
    expectError(refusal as Answer, 400);
    expect(refusal?.json).toHaveProperty('message', 'Authorization must be sent once.');
  });

  test('in the chunks of a body are answered 400, as the operation declares', async () => {
    const extension = 'a'.repeat(20_000);
    await expectRefused(withChunks(`5;${extension}\r\n`), 400, 413, FRAMING);
    const trailer = `${HEX_LENGTH}\r\n${body()}\r\n0\r\nX: ${extension}\r\n\r\n`;
    await expectRefused(withChunks(trailer), 400, 413, FRAMING);
    // Each line is short, but together they are more than a body may be.
    const chunk = `1;${'a'.repeat(10_000)}\r\n \r\n`;
    await expectRefused(withChunks(chunk.repeat(110)), 400, 413, FRAMING);
  });

  test('are accepted up to 16 KiB, with the line that ends them', async () => {
    const withHead = (size: number) => {
      const rest = create(unusedId(), 'Connection: close\r\nX: \r\n').indexOf('\r\n\r\n') + 4;
      return create(unusedId(), `Connection: close\r\nX: ${'a'.repeat(size - rest)}\r\n`);
    };
    const withChunkLine = (size: number) => {
      const line = `${HEX_LENGTH};${'a'.repeat(size - HEX_LENGTH.length - 3)}\r\n`;
      return withLines(
        'Connection: close\r\nTransfer-Encoding: chunked\r\n',
        `${line}${body()}\r\n0\r\n\r\n`,
      );
    };
    const KIB_16 = 16_384;
    for (const request of [withHead(KIB_16), withChunkLine(KIB_16)]) {
      const [answer] = await converse(service.port, [request]);
      expect(answer?.status).toBe(200);
    }
    await expectRefused(withHead(KIB_16 + 1), 431, 431, TOO_LARGE);
    await expectRefused(withChunkLine(KIB_16 + 1), 400, 413, FRAMING);
  });
});

describe('What this server does not offer', () => {
  test.each(['localhost:443', '/plants', '*', 'http://localhost/plants'])(
    'is refused: CONNECT %s',
    async (target) => {
      const [answer, ...more] = await converse(service.port, [
        `CONNECT ${target} HTTP/1.1\r\n${HOST}\r\n${createBehind()}`,
      ]);
      expectError(answer as Answer, 405);
      expect(answer?.headers).toMatchObject({ allow: 'POST, OPTIONS', connection: 'close' });
      expect(more).toEqual([]);
    },
  );

  test.each([
    ...['tea', '200-ok', '100', '', 'tea, biscuits', '100-continues', 'x-100-continue', '100-continue;a=b'],
    ...['tea, 100-continue', '100-continue, 100-continue', '"100-continue"', '100 continue'],
  ])('is refused: Expect: %s', (expectation) =>
    expectRefused(
      withHeader(`Expect: ${expectation}`),
      400,
      417,
      'The only expectation that can be met is 100-continue.',
    ),
  );

  test.each([
    ['websocket', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'],
    ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'],
    ['two protocols', 'UPGRADE: TLS/1.0\r\nupgrade: h2c\r\nconnection: upgrade\r\n'],
  ])('is ignored: Upgrade: %s', async (_, lines) => {
    const ids = [unusedId(), unusedId(), unusedId()];
    const chunked = withLines(
      `${lines}Transfer-Encoding: chunked\r\n`,
      `${HEX_LENGTH}\r\n${body(ids[1])}\r\n0\r\n\r\n`,
    );
    const requests = [
      create(ids[0], lines),
      chunked,
      `GET /health/live HTTP/1.1\r\n${HOST}${lines}\r\n`,
      create(ids[2]),
    ];
    // The last request is malformed, and is answered too.
    const answers = await converse(service.port, [[...requests, withHeader('X Y: z')].join('')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400]);
    for (const id of ids) expect(await rowOf(service, id)).toBeDefined();
  });

  test('is ignored in a request that ends too early: Upgrade', async () => {
    const request = create(unusedId(), 'Connection: Upgrade\r\nUpgrade: websocket\r\n').slice(0, -1);
    const answers = await converse(service.port, [request], { thenEnd: true });
    expect(answers.map(({ json }) => json)).toEqual([
      { error: 400, message: 'The request ended before it was complete.' },
    ]);
  });

  test('is ignored with a body that arrives in pieces: Upgrade', async () => {
    const id = unusedId();
    const request = create(id, 'Connection: Upgrade, close\r\nUpgrade: websocket\r\n');
    const middle = request.length - LENGTH / 2;
    const answers = await converse(service.port, [request.slice(0, middle), request.slice(middle)]);
    expect(answers.map(({ status }) => status)).toEqual([200]);
    expect(await rowOf(service, id)).toBeDefined();
  });
});

describe('HTTP/1.0', () => {
  test.each([
    ['with Host', HOST],
    ['without Host', ''],
  ])('is served %s, and the connection ends', async (_, host) => {
    const id = unusedId();
    const request = create(id).replace('HTTP/1.1', 'HTTP/1.0').replace(HOST, host);
    const [answer, ...more] = await converse(service.port, [request]);
    expect([answer?.status, answer?.text, more]).toEqual([200, '{"name":"a"}', []]);
    expect(await rowOf(service, id)).toBeDefined();
  });
});

describe('What HTTP/1.1 allows', () => {
  test.each([
    ['empty lines before the request', (id: bigint) => `\r\n\r\n${create(id, 'Connection: close\r\n')}`],
    ['header names in any case', (id: bigint) => create(id, 'cOnNeCtIoN: close\r\n').replace('Host', 'hOST')],
    ['no space after the colon', (id: bigint) => create(id, 'Connection:close\r\n')],
    [
      'tabs around a value',
      (id: bigint) =>
        create(id, 'Connection: close\r\n').replace('Type: ', 'Type:\t \t').replace('json', 'json \t'),
    ],
    [
      'tabs around a length',
      (id: bigint) => create(id, 'Connection: close\r\n').replace(/Length: (\d+)/, 'Length: \t $1 \t'),
    ],
    [
      'one tab before and after a length',
      (id: bigint) => create(id, 'Connection: close\r\n').replace(/Length: (\d+)/, 'Length:\t$1\t'),
    ],
    [
      'tabs around a transfer coding',
      (id: bigint) =>
        withLines(
          'Connection: close\r\nTransfer-Encoding:\tChunked \t\r\n',
          `${HEX_LENGTH}\r\n${body(id)}\r\n0\r\n\r\n`,
        ),
    ],
    ['an empty Host', (id: bigint) => create(id, 'Connection: close\r\n').replace(HOST, 'Host:\r\n')],
    [
      'a Host with an IPv6 address and a port',
      (id: bigint) => create(id, 'Connection: close\r\n').replace(HOST, 'Host: [::1]:80\r\n'),
    ],
    ['the absolute form', (id: bigint) => create(id, 'Connection: close\r\n').replace(' /', ' HTTP://a:1/')],
    ['bytes beyond ASCII in a value', (id: bigint) => create(id, 'Connection: close\r\nX: \xe4\xff\r\n')],
    [
      'leading zeros in a length',
      (id: bigint) => create(id, 'Connection: close\r\n').replace('Length: ', 'Length: 00'),
    ],
  ])('is accepted: %s', async (_, request) => {
    const id = unusedId();
    const [answer, ...more] = await converse(service.port, [request(id)]);
    expect([answer?.status, answer?.text, more]).toEqual([200, '{"name":"a"}', []]);
    expect(await rowOf(service, id)).toBeDefined();
  });
});

describe('One connection', () => {
  test('answers pipelined requests in order', async () => {
    const ids = Array.from({ length: 20 }, () => unusedId());
    const requests = ids.map((id, index) => create(id, index === 19 ? 'Connection: close\r\n' : ''));
    const answers = await converse(service.port, [requests.join('')]);
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    for (const id of ids) expect(await rowOf(service, id)).toBeDefined();
  });

  test.each<[string, string, number, number?]>([
    ['bytes that are not HTTP', 'garbage\r\n\r\n', 400],
    ['a malformed request', withHeader('X Y: a'), 400],
    [
      'a request with two framings',
      withLines(`Content-Length: ${LENGTH}\r\nTransfer-Encoding: chunked\r\n`),
      400,
    ],
    ['two Hosts', create(1n, HOST), 400],
    ['headers too large', withHeader(`X: ${'a'.repeat(20_000)}`), 431],
    ['an unknown expectation', create(1n, 'Expect: tea\r\n'), 400, 417],
    ['CONNECT', `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\n`, 405],
  ])('answers the complete requests before %s', async (_, bad, status, error = status) => {
    const ids = [unusedId(), unusedId(), unusedId()];
    const good = ids.map((id) => create(id)).join('');
    const before = await countRows(service);
    const answers = await converse(service.port, [good + bad + createBehind()]);
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, status]);
    expectError(answers[3] as Answer, status, error);
    expect(await countRows(service)).toBe(before + 3);
  });

  test('gets one answer if a request is refused and its body turns out malformed', async () => {
    const head = `${LINE}${HOST}Transfer-Encoding: chunked\r\n\r\n`;
    const answers = await converse(service.port, [head, ...Array<string>(50).fill('1\r\n \r\n'), 'zz\r\n']);
    // The malformed chunk may arrive before or after the answer to the request.
    expect(answers).toHaveLength(1);
    expect([400, 401]).toContain(answers[0]?.status);
  });
});

test('After all of these the service works, and nothing after a refused request is stored', async () => {
  expect((await post(service.port, plant())).status).toBe(200);
  expect(behind.length).toBeGreaterThan(100);
  for (const id of behind) expect(await rowOf(service, id)).toBeUndefined();
  expect(service.logs()).not.toMatch(/"level":[456]0/);
});
