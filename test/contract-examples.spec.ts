import { readFileSync } from 'node:fs';
import { EXAMPLES as OPERATION_EXAMPLES } from '../src/openapi/examples.js';
import { exchange, post, type Answer } from './support/requests.js';
import { startService, TOKEN, unusedId, type TestService } from './support/service.js';

/** Every Error body in docs/CONTRACT.md. */
const DOCUMENTED = [...readFileSync('docs/CONTRACT.md', 'utf8').matchAll(/^\{"error".*\}$/gm)].map(
  ([body]) => body,
);

/** The table of `error` numbers in docs/CONTRACT.md: the status that each has on the operation. */
const STATUSES = new Map(
  [...readFileSync('docs/CONTRACT.md', 'utf8').matchAll(/^\| (\d{3}) {5}\| (\d{3}) +\|/gm)].map(
    ([, error, status]) => [Number(error), Number(status)],
  ),
);

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const id = unusedId();
const head = (request: string, headers = '') =>
  exchange(service.port, [`${request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`]);

const EXAMPLES: [name: string, send: () => Promise<Answer>][] = [
  ['a body that is not JSON', () => post(service.port, '{"id":1,')],
  ['text that cannot be stored', () => post(service.port, '{"id":1,"name":"a\\u0000"}')],
  ['a member that appears twice', () => post(service.port, '{"id":1,"name":"a","id":2}')],
  ['no token', () => post(service.port, '{}', { Authorization: undefined })],
  ['a refused token', () => post(service.port, '{}', { Authorization: 'Bearer nope' })],
  ['an unknown path', () => head('GET /nothing')],
  ['a method that the path does not have', () => head('GET /plants')],
  ['a taken id', () => post(service.port, `{"id":${id},"name":"b"}`)],
  ['a large body', () => post(service.port, ' '.repeat(1024 * 1024 + 1))],
  ['another media type', () => post(service.port, '{}', { 'Content-Type': 'text/plain' })],
  ['an unknown expectation', () => head('POST /plants', `Expect: tea\r\nAuthorization: Bearer ${TOKEN}\r\n`)],
  ['several faults', () => post(service.port, '{"id":"71","tag":null}')],
  ['large headers', () => head('GET /plants', `X: ${'x'.repeat(20_000)}\r\n`)],
];

beforeAll(async () => {
  expect((await post(service.port, `{"id":${id},"name":"a"}`)).status).toBe(200);
});

const seen = new Set<string>();

test.each(EXAMPLES)('docs/CONTRACT.md shows what the service answers to %s', async (_, send) => {
  const { text, status, json } = await send();
  expect(DOCUMENTED).toContain(text);
  seen.add(text);
  const { error } = json as { error: number };
  expect(status).toBe(STATUSES.get(error) ?? error);
});

test('docs/CONTRACT.md shows what the service answers to a create that the database cannot store', async () => {
  await service.sql('ALTER TABLE plants RENAME TO elsewhere');
  const { text } = await post(service.port, `{"id":${unusedId()},"name":"a"}`);
  await service.sql('ALTER TABLE elsewhere RENAME TO plants');
  expect(DOCUMENTED).toContain(text);
  seen.add(text);
});

// operations.spec.ts has those of successes.
test.each(Object.entries(OPERATION_EXAMPLES))(
  "The examples of %s's errors are in docs/CONTRACT.md",
  (_, { responses }) => {
    for (const [status, example] of Object.entries(responses))
      if (Number(status) >= 400) expect(DOCUMENTED).toContain(JSON.stringify(example));
  },
);

test('The table of error numbers has those of the examples, and two more', () => {
  const numbers = new Set([...seen].map((text) => (JSON.parse(text) as { error: number }).error));
  // slow-requests.spec.ts and errors.spec.ts cause these.
  expect([...STATUSES.keys()].filter((error) => !numbers.has(error))).toEqual([408, 500]);
  // These never reach the operation.
  expect([...numbers].filter((error) => !STATUSES.has(error)).sort()).toEqual([404, 405, 431]);
});

test('docs/CONTRACT.md shows no other Error', () => {
  expect([...seen].sort()).toEqual([...DOCUMENTED].sort());
});
