import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { converse } from './support/connection.js';
import { exchange, expectError, post, type Answer, type Bytes } from './support/requests.js';
import { countRows, startService, TOKEN, unusedId, type TestService } from './support/service.js';

const SECOND_TOKEN = 'second~token/+==';
const HASHED_TOKEN = 'kept.out-of_the.environment';
const HASH = createHash('sha256').update(HASHED_TOKEN).digest('hex');

/** WWW-Authenticate (RFC 6750 section 3). It has an error code only if the request has a token. */
const NO_CREDENTIALS = 'Bearer realm="plant-store"';
const INVALID_TOKEN = 'Bearer realm="plant-store", error="invalid_token"';
const INVALID_REQUEST = 'Bearer realm="plant-store", error="invalid_request"';

let service: TestService;
beforeAll(async () => {
  service = await startService({ env: { ACCESS_TOKENS: `${TOKEN},${SECOND_TOKEN},sha256:${HASH}` } });
});
afterAll(() => service.stop());

/** Sends a request that needs only a token to be good, with these header lines. */
function withHeaders(lines: string[], body: Bytes = `{"id":${unusedId()},"name":"a"}`, path = '/plants') {
  const mediaType = lines.some((line) => line.startsWith('Content-Type:'))
    ? []
    : ['Content-Type: application/json'];
  const all = ['Host: localhost', ...mediaType, ...lines, 'Connection: close'];
  const bytes = Buffer.from(body as string);
  const head = [...all, `Content-Length: ${bytes.length}`].map((line) => `${line}\r\n`).join('');
  return exchange(service.port, [`POST ${path} HTTP/1.1\r\n${head}\r\n`, bytes]);
}

function expectUnauthorized(answer: Answer, challenge: string): void {
  expectError(answer, 401);
  expect(answer.headers['www-authenticate']).toBe(challenge);
}

describe('A request without credentials', () => {
  test.each([
    ['no Authorization', []],
    ['an empty Authorization', ['Authorization: ']],
    ['the scheme alone', ['Authorization: Bearer']],
    ['the scheme and a space', ['Authorization: Bearer ']],
    ['the token alone', [`Authorization: ${TOKEN}`]],
    ['a scheme that starts with Bearer', [`Authorization: BearerX ${TOKEN}`]],
    ['Basic', ['Authorization: Basic dXNlcjpwYXNz']],
    ['Basic with the token', [`Authorization: Basic ${TOKEN}`]],
    ['Digest', ['Authorization: Digest username="u", realm="r", uri="/plants"']],
    ['the token in another header', [`Proxy-Authorization: Bearer ${TOKEN}`, `X-Access-Token: ${TOKEN}`]],
    ['the token in a cookie', [`Cookie: access_token=${TOKEN}; Authorization=Bearer ${TOKEN}`]],
  ])('is refused with a challenge that names no error: %s', async (_, lines) => {
    expectUnauthorized(await withHeaders(lines), NO_CREDENTIALS);
  });
});

describe('A token', () => {
  test.each([
    ['another scheme case', `Authorization: bearer ${TOKEN}`],
    ['another scheme case', `Authorization: BEARER ${TOKEN}`],
    ['another header case', `aUTHORIZATION: Bearer ${TOKEN}`],
    ['several spaces', `Authorization: Bearer    ${TOKEN}`],
    ['white space around the value', `Authorization: \t Bearer ${TOKEN} \t `],
    ['the second of the tokens', `Authorization: Bearer ${SECOND_TOKEN}`],
    ['the token of a digest', `Authorization: Bearer ${HASHED_TOKEN}`],
  ])('is accepted with %s: %s', async (_, line) => {
    expect((await withHeaders([line])).status).toBe(200);
  });

  test.each([
    ['another token', 'nope'],
    ['another case', TOKEN.toUpperCase()],
    ['two parts', `${TOKEN} ${TOKEN}`],
    ['a tab', `\t${TOKEN}`],
    ['quotes', `"${TOKEN}"`],
    ['a comma after it', `${TOKEN},`],
    ['two credentials in one header', `nope, Bearer ${TOKEN}`],
    ['the value of ACCESS_TOKENS', `${TOKEN},${SECOND_TOKEN}`],
    ['a digest', HASH],
    ['a digest as in ACCESS_TOKENS', `sha256:${HASH}`],
    ['more padding', `${SECOND_TOKEN}=`],
    ['less padding', SECOND_TOKEN.slice(0, -1)],
    ['an encoded character', `%74${TOKEN.slice(1)}`],
    ['an unsigned JWT', 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.'],
    ['6000 characters', 'x'.repeat(6000)],
  ])('is refused: %s', async (_, credentials) => {
    expectUnauthorized(await withHeaders([`Authorization: Bearer ${credentials}`]), INVALID_TOKEN);
  });

  test('is refused if it is shorter or longer than a good one', async () => {
    const lengths = Array.from({ length: 2 * TOKEN.length }, (_, index) => index + 1);
    for (const length of lengths.filter((length) => length !== TOKEN.length)) {
      const token = TOKEN.repeat(3).slice(0, length);
      expectUnauthorized(await withHeaders([`Authorization: Bearer ${token}`]), INVALID_TOKEN);
    }
  });

  test('is refused with any other byte at any position', async () => {
    const visible = Array.from({ length: 256 }, (_, byte) => byte).filter(
      (byte) => byte > 0x20 && byte !== 0x7f,
    );
    for (const byte of visible) {
      const place = byte % TOKEN.length;
      const token = TOKEN.slice(0, place) + String.fromCharCode(byte) + TOKEN.slice(place + 1);
      if (token === TOKEN) continue;
      expectUnauthorized(await withHeaders([`Authorization: Bearer ${token}`]), INVALID_TOKEN);
    }
  });

  test.each([0x00, 0x01, 0x0b, 0x1f, 0x7f])('is malformed HTTP with the byte %i', async (byte) => {
    const line = `Authorization: Bearer ${TOKEN}${String.fromCharCode(byte)}`;
    expectError(await withHeaders([line]), 400);
  });

  test.each([
    ['the same token twice', [`Authorization: Bearer ${TOKEN}`, `Authorization: Bearer ${TOKEN}`]],
    ['a good and a bad token', [`Authorization: Bearer ${TOKEN}`, 'Authorization: Bearer nope']],
    ['a bad and a good token', ['Authorization: Bearer nope', `Authorization: Bearer ${TOKEN}`]],
    ['an empty header and a good token', ['Authorization:', `authorization: Bearer ${TOKEN}`]],
    ['another scheme and a good token', ['Authorization: Basic x', `AUTHORIZATION: Bearer ${TOKEN}`]],
  ])(
    'is refused in two Authorization headers, because a gateway may read the other one: %s',
    async (_, lines) => {
      const before = await countRows(service);
      const answer = await withHeaders(lines);
      expectError(answer, 400);
      expect(answer.headers['www-authenticate']).toBe(INVALID_REQUEST);
      expect(await countRows(service)).toBe(before);
    },
  );
});

describe('A token outside the Authorization header', () => {
  const form = 'Content-Type: application/x-www-form-urlencoded';
  test.each([
    ['in the query', '{"id":1,"name":"a"}', `/plants?access_token=${TOKEN}`, []],
    ['in the query, encoded', '{"id":1,"name":"a"}', `/plants?access%5Ftoken=${TOKEN}`, []],
    ['in a JSON body', `{"id":1,"name":"a","access_token":"${TOKEN}"}`, '/plants', []],
    ['in a form', `id=1&name=a&access_token=${TOKEN}`, '/plants', [form]],
  ])('is ignored: %s', async (_, body, path, lines) => {
    const before = await countRows(service);
    expectUnauthorized(await withHeaders(lines, body, path), NO_CREDENTIALS);
    expect(await countRows(service)).toBe(before);
  });

  test('does not conflict with a good header', async () => {
    const inQuery = `{"id":${unusedId()},"name":"a"}`;
    expect((await post(service.port, inQuery, {}, '/plants?access_token=zzz')).status).toBe(200);
    const inBody = `{"id":${unusedId()},"name":"a","access_token":"zzz"}`;
    expect((await post(service.port, inBody)).status).toBe(200);
  });
});

describe('Without a good token the service answers 401 and does not read or await the body:', () => {
  const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024, ' '));
  const unsent = { 'Content-Length': '500' };
  test.each<[string, Bytes, Record<string, string | undefined>]>([
    ['malformed JSON', '{"id":1,', {}],
    ['bytes that are not UTF-8', Uint8Array.of(0xff, 0xfe), {}],
    ['an empty body', '', {}],
    ['an oversize body', 'x'.repeat(2 * 1024 * 1024), {}],
    ['an oversize length', '', { 'Content-Length': '99999999999' }],
    ['a gzip bomb', bomb, { 'Content-Encoding': 'gzip' }],
    ['a broken coding', 'x', { 'Content-Encoding': 'gzip' }],
    ['an unknown coding', 'x', { 'Content-Encoding': 'foo' }],
    ['another media type', '<a/>', { 'Content-Type': 'text/xml' }],
    ['no media type', 'x', { 'Content-Type': undefined }],
    ['a body that stops half-way', '{"id":1,', unsent],
    ['a body that never starts', '', unsent],
    [
      'a chunked body that never ends',
      '4\r\n{"id',
      { 'Transfer-Encoding': 'chunked', 'Content-Length': undefined },
    ],
    ['a client that waits for 100 Continue', '', { Expect: '100-continue', ...unsent }],
  ])('%s', async (_, body, headers) => {
    for (const [authorization, challenge] of [
      [undefined, NO_CREDENTIALS],
      ['Bearer nope', INVALID_TOKEN],
    ] as const) {
      expectUnauthorized(
        await post(service.port, body, { ...headers, Authorization: authorization }),
        challenge,
      );
    }
    // If the service waited for the body, it would answer 408.
  });
});

describe('The cache of checked tokens', () => {
  test('never mixes up tokens that arrive at the same time', async () => {
    const good = [TOKEN, SECOND_TOKEN, HASHED_TOKEN].flatMap((token) => [
      `Bearer ${token}`,
      `bearer ${token}`,
    ]);
    const bad = [`${TOKEN}x`, TOKEN.slice(1), SECOND_TOKEN.slice(0, -1), HASH].map(
      (token) => `Bearer ${token}`,
    );
    const others = [`Basic ${TOKEN}`, TOKEN, '', `Bearer${TOKEN}`];
    const presented = Array.from({ length: 30 }, () => [...good, ...bad, ...others]).flat();
    const answers = await Promise.all(
      presented.map((credentials) => withHeaders([`Authorization: ${credentials}`])),
    );
    expect(answers.map(({ status }) => status)).toEqual(
      presented.map((credentials) => (good.includes(credentials) ? 200 : 401)),
    );
  });

  test('gives the right answer after more headers than it can hold', async () => {
    // The cache knows whole headers, and the spaces make each another one.
    const requests: string[] = [];
    for (let spaces = 1; spaces <= 1_100; spaces++) {
      for (const token of [TOKEN, `${TOKEN}x`]) {
        const body = `{"id":${unusedId()},"name":"a"}`;
        requests.push(
          `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer${' '.repeat(spaces)}${token}\r\n` +
            `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
      }
    }
    const answers = await converse(service.port, [requests.join('')], { thenEnd: true });
    expect(answers.map(({ status }) => status)).toEqual(
      requests.map((_, index) => (index % 2 === 0 ? 200 : 401)),
    );
  });
});

test('No token, good or bad, is in a log line', () => {
  const logs = service.logs();
  expect(logs).toContain('"status":401');
  for (const secret of [TOKEN, SECOND_TOKEN, HASHED_TOKEN, HASH, 'nope', 'access_token']) {
    expect(logs).not.toContain(secret);
  }
});
