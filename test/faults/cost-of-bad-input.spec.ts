import { gzipSync } from 'node:zlib';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/patience.js';
import { expectError, post, type Bytes } from '../support/requests.js';
import { ServiceProcess } from '../support/service-process.js';
import { unusedId } from '../support/service.js';

const MB = 1024 * 1024;
/** The default limit of a body, less room for what surrounds the costly part. */
const WHOLE = MB - 100;

/**
 * The most that one bad request may cost, in milliseconds of the service's processor time. Most cost less than a tenth
 * of it. The service answers nobody else while it reads one.
 */
const LIMIT_MS = 200;
/** A cost below this is ignored: noise is larger than any difference. */
const CHEAP_MS = 10;
/**
 * Cost must be linear: a whole body takes some four times as long as a quarter, whereas a quadratic cost takes sixteen
 * times. The limit lies between, so that neither a cache that is too small nor a garbage collection decides.
 */
const PART = 4;
const MAX_GROWTH = 8;
/** The lowest of this many costs counts, because others contain noise (a garbage collection, for example). */
const TRIES = 5;
/** `used` is memory in use; `resident` also contains garbage, whose size depends on chance. */
const LIMIT_MB = { used: 32, resident: 64 };

interface BadRequest {
  body: Bytes;
  headers?: Record<string, string | undefined>;
  error: number;
}

const member = (value: string) => `{"id":1,"name":"a","x":${value}}`;
const many = (bytes: number, length: number, part: (index: number) => string) =>
  Array.from({ length: Math.floor(bytes / length) }, (_, index) => part(index)).join(',');
const nested = (bytes: number, open: string, close: string) => {
  const levels = Math.floor(bytes / (open.length + close.length));
  return open.repeat(levels) + '1' + close.repeat(levels);
};
const EMPTY_MEMBER = gzipSync('');
const GZIP = { 'Content-Encoding': 'gzip' };

/** Bad requests, each of a given size in bytes (for some of the compressed ones: before compression). */
const COSTLY: Record<string, (bytes: number) => BadRequest> = {
  'an id of many digits': (bytes) => ({ body: `{"id":${'9'.repeat(bytes)},"name":"a"}`, error: 422 }),
  'an id with many zeros': (bytes) => ({
    body: `{"id":0.${'0'.repeat(bytes)}1e1000001,"name":"a","tag":1}`,
    error: 422,
  }),
  'an id with many digits of exponent': (bytes) => ({
    body: `{"id":1e${'9'.repeat(bytes)},"name":"a"}`,
    error: 422,
  }),
  'an id of 1e1000000000': () => ({ body: '{"id":1e1000000000,"name":"a"}', error: 422 }),
  'a long number, then many members with one name': (bytes) => ({
    body: member(`1.${'0'.repeat(bytes / 2)},${many(bytes / 2, 6, () => '"x":1')},"x":2`),
    error: 400,
  }),
  'brackets that only open': (bytes) => ({ body: '['.repeat(bytes), error: 400 }),
  'brackets that open and close': (bytes) => ({ body: nested(bytes, '[', ']'), error: 400 }),
  'brackets in a member': (bytes) => ({ body: member(nested(bytes, '[', ']')), error: 400 }),
  'objects in objects': (bytes) => ({ body: member(nested(bytes, '{"a":', '}')), error: 400 }),
  'brackets and braces that are never closed': (bytes) => ({ body: '[{"a":'.repeat(bytes / 6), error: 400 }),
  'a list of lists': (bytes) => ({ body: member(`[${many(bytes, 3, () => '[]')},]`), error: 400 }),
  'a list of objects': (bytes) => ({ body: member(`[${many(bytes, 3, () => '{}')},]`), error: 400 }),
  'a list of numbers': (bytes) => ({ body: member(`[${many(bytes, 4, () => '1e9')},]`), error: 400 }),
  'many names': (bytes) => ({ body: `{${many(bytes, 12, (index) => `"${index}":1`)},}`, error: 400 }),
  // Before the fix of CVE-2026-21717, V8 gave all of these names the same hash.
  'names with one hash': (bytes) => ({
    body: `{${many(bytes, 15, (index) => `"${1_006_632_960 + index * 2 ** 15}":0`)},"":1,"":2}`,
    error: 400,
  }),
  'one name many times': (bytes) => ({ body: `{${many(bytes, 5, () => '"":1')},"":2}`, error: 400 }),
  'a text of escapes': (bytes) => ({ body: `{"id":1,"name":"${'\\u0000'.repeat(bytes / 6)}"}`, error: 400 }),
  'a text of quotes that is never closed': (bytes) => ({
    body: `{"id":1,"name":"${'\\"'.repeat(bytes / 2)}`,
    error: 400,
  }),
  'white space': (bytes) => ({ body: ' '.repeat(bytes), error: 400 }),
  'a gzip bomb': (bytes) => ({ body: gzipSync(Buffer.alloc(64 * bytes, ' ')), headers: GZIP, error: 413 }),
  'compressed brackets': (bytes) => ({ body: gzipSync(nested(bytes, '[', ']')), headers: GZIP, error: 400 }),
  'a gzip bomb without a token': (bytes) => ({
    body: gzipSync(Buffer.alloc(64 * bytes, ' ')),
    headers: { ...GZIP, Authorization: undefined },
    error: 401,
  }),
  'credentials of white space': (bytes) => ({
    body: '{}',
    headers: { Authorization: `${'\u00a0'.repeat(bytes / 70)}a b` },
    error: 401,
  }),
  'a media type with many parameters': (bytes) => ({
    body: '{}',
    headers: { 'Content-Type': `a/b${';a=b'.repeat(bytes / 300)}` },
    error: 415,
  }),
  'a media type with many spaces': (bytes) => ({
    body: '{}',
    headers: { 'Content-Type': `application/json${' '.repeat(bytes / 70)}x` },
    error: 415,
  }),
  'a parameter with many spaces': (bytes) => ({
    body: '{}',
    headers: { 'Content-Type': `application/json;a=${' '.repeat(bytes / 70)};charset=x` },
    error: 415,
  }),
  'a content coding with many spaces': (bytes) => ({
    body: '{}',
    headers: { 'Content-Encoding': `gzip${' '.repeat(bytes / 70)}x` },
    error: 415,
  }),
  'an expectation with many spaces': (bytes) => ({
    body: '{}',
    headers: { Expect: `100-continue${' '.repeat(bytes / 70)}x` },
    error: 417,
  }),
  'a Host of many dots': (bytes) => ({
    body: '{}',
    headers: { Host: `${'a.'.repeat(bytes / 140)}/` },
    error: 400,
  }),
  'a Content-Length with many spaces': (bytes) => ({
    body: '{}',
    headers: { 'Content-Length': `2${' '.repeat(bytes / 70)}x` },
    error: 400,
  }),
  ...Object.fromEntries(
    [
      'X-Forwarded-For',
      'Forwarded',
      'Origin',
      'traceparent',
      'X-Request-Id',
      'Access-Control-Request-Headers',
    ].flatMap((name) =>
      ['1,', ' ', ':', '1.', 'f:', ';='].map((part) => [
        `${name} with many ${JSON.stringify(part)}`,
        (bytes: number): BadRequest => ({
          body: '{}',
          headers: { [name]: `0${part.repeat(bytes / 70 / part.length)}1` },
          error: 422,
        }),
      ]),
    ),
  ),
  'a chunk for each byte': (bytes) => ({
    body: `${'1\r\n \r\n'.repeat(bytes / 6)}0\r\n\r\n`,
    headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
    error: 400,
  }),
  'many empty gzip members': (bytes) => ({
    body: Buffer.concat(Array.from({ length: bytes / 20 }, () => EMPTY_MEMBER)),
    headers: GZIP,
    error: 400,
  }),
};

/** Small requests that fail; many of them are sent. */
const SMALL: [body: string, headers: Record<string, string | undefined>, path?: string][] = [
  ['{', {}],
  ['{}', {}],
  ['[]', {}],
  ['', {}],
  ['{"id":"1","name":null,"tag":{}}', {}],
  ['{"id":1,"id":2}', {}],
  ['{"id":1,"name":"\\u0000"}', {}],
  ['{"id":1,"name":"taken"}', {}],
  ['{}', { Authorization: undefined }],
  ['{}', { Authorization: 'Bearer nope' }],
  ['{}', { 'Content-Type': 'text/plain' }],
  ['{}', { 'Content-Encoding': 'gzip' }],
  ['{}', {}, '/nothing'],
];
const MANY = 4_000;
const AT_ONCE = 16;

let database: TestDatabase;
let service: ServiceProcess;
let before: Memory;
/** The cost of as many small requests that are answered 200, in milliseconds of processor time. */
let costOfGoodOnes: number;

const create = async (name = 'a') => {
  expect((await post(service.port, `{"id":${unusedId()},"name":"${name}"}`)).status).toBe(200);
};

beforeAll(async () => {
  database = await createTestDatabase();
  // With these the service reads every header that it ever reads.
  const readers = { TRUST_PROXY: 'loopback', CORS_ORIGINS: 'https://a.example', LOG_LEVEL: 'info' };
  service = await ServiceProcess.start({ ...database.env, ...readers });
  expect((await post(service.port, '{"id":1,"name":"a"}')).status).toBe(200);
  // Good requests of these sizes take memory too; only what bad ones take beyond it counts.
  for (let count = 0; count < 10; count++) await create('a'.repeat(WHOLE));
  costOfGoodOnes = await cpuOf(() => inTurn(MANY, () => create()));
  before = await memory();
});
afterAll(async () => {
  await service.end('SIGKILL');
  await database.drop();
});

/** Does `work` `count` times, `AT_ONCE` at a time. */
async function inTurn(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

interface Memory {
  used: number;
  resident: number;
}

async function memory(): Promise<Memory> {
  return { used: await service.memory(), resident: service.residentMemory() };
}

/** @returns the processor time that the service uses during `work`, in milliseconds. */
async function cpuOf(work: () => Promise<void>): Promise<number> {
  const begun = await service.cpuMs();
  await work();
  return (await service.cpuMs()) - begun;
}

async function costOf({ body, headers, error }: BadRequest): Promise<number> {
  const bytes = Buffer.from(body as string);
  let lowest = Infinity;
  for (let count = 0; count < TRIES && lowest > CHEAP_MS; count++) {
    const cost = await cpuOf(async () => {
      expectError(await post(service.port, bytes, headers), error === 401 ? 401 : 400, error);
    });
    lowest = Math.min(lowest, cost);
  }
  return lowest;
}

test.each(Object.entries(COSTLY))('Costs time in proportion to the size: %s', async (_what, request) => {
  const whole = await costOf(request(WHOLE));
  expect(whole).toBeLessThanOrEqual(LIMIT_MS);
  if (whole <= CHEAP_MS) return;
  const part = await costOf(request(WHOLE / PART));
  expect(whole / Math.max(part, CHEAP_MS)).toBeLessThanOrEqual(MAX_GROWTH);
});

test('4,000 small requests that fail cost less than twice as much as 4,000 creates', async () => {
  const cost = await cpuOf(() =>
    inTurn(MANY, async (index) => {
      const [body, headers, path] = SMALL[index % SMALL.length] as (typeof SMALL)[number];
      expect((await post(service.port, body, headers, path)).status).toBeGreaterThanOrEqual(400);
    }),
  );
  // Some are more work than a create: a connection that ends, a line in the log.
  expect(cost).toBeLessThan(2 * costOfGoodOnes);
});

test('Bad requests leave no memory in use', async () => {
  // A connection that was cut keeps its memory for a while.
  await until('the memory is free again', async () => {
    const after = await memory();
    return after.used - before.used <= LIMIT_MB.used && after.resident - before.resident <= LIMIT_MB.resident;
  });
});
