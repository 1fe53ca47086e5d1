import type { OpenAPIObject } from '@nestjs/swagger';
import { EXAMPLES } from '../src/openapi/examples.js';
import { operationsOf } from '../src/openapi/operations.js';
import { exchange, expectError, type Answer } from './support/requests.js';
import { SECOND_EXAMPLES, withSecondOperation } from './support/second-operation.js';
import { startService, TOKEN, type TestService } from './support/service.js';

// What holds for every operation of the document. Each is tried with its example: on the service, and on one that has a
// second operation.

type Operation = ReturnType<typeof operationsOf>[number];
interface Parameter {
  name: string;
  in: string;
  schema: { format?: string };
}

/** Numbers out of range, other spellings of numbers, and what is no number. */
const NO_INT64 = ['9223372036854775808', '1e3', '1.0', '007', '-0', '+1', 'SECRET', '%31x', ' '];

describe.each([
  ['the service', { options: {}, examples: EXAMPLES, int64: 0 }],
  [
    'a service with two',
    {
      options: { root: withSecondOperation },
      examples: { ...EXAMPLES, ...SECOND_EXAMPLES },
      int64: 1,
    },
  ],
])('Every operation of %s', (_, { options, examples, int64 }) => {
  let service: TestService;
  let operations: Operation[];
  beforeAll(async () => {
    service = await startService(options);
    const served = await fetch(`${service.url}/openapi.json`);
    operations = operationsOf((await served.json()) as OpenAPIObject);
  });
  afterAll(() => service.stop());

  const exampleOf = ({ operation }: Operation) => examples[operation.operationId ?? ''];

  /** Sends an operation's example, but for some of the values. */
  function send(
    known: Operation,
    { token = TOKEN, parameters = {} }: { token?: string | null; parameters?: Record<string, string> } = {},
  ): Promise<Answer> {
    const example = exampleOf(known);
    const values: Record<string, unknown> = { ...example?.parameters, ...parameters };
    const path = known.template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(values[name])),
    );
    const body = example?.request === undefined ? '' : JSON.stringify(example.request);
    const head = [
      `${known.method.toUpperCase()} ${path} HTTP/1.1`,
      'Host: localhost',
      'Connection: close',
      ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
      ...(body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`]),
    ];
    return exchange(service.port, [`${head.join('\r\n')}\r\n\r\n${body}`]);
  }

  const int64Parameters = () =>
    operations.flatMap((known) =>
      ((known.operation.parameters ?? []) as Parameter[])
        .filter((parameter) => parameter.in === 'path' && parameter.schema.format === 'int64')
        .map((parameter) => [known, parameter] as const),
    );

  const nameOf = ({ operation }: Operation) => operation.operationId;

  test('has an example, and declares 400, 401 and 503', () => {
    for (const known of operations) {
      const statuses = Object.keys(known.operation.responses);
      expect([nameOf(known), statuses]).toEqual([
        nameOf(known),
        expect.arrayContaining(['400', '401', '503']),
      ]);
      expect(Object.keys(examples)).toContain(nameOf(known));
      expect(statuses).toEqual(
        expect.arrayContaining(Object.keys(exampleOf(known)?.responses ?? { 'no example': {} })),
      );
    }
    expect(operations.map(nameOf).sort()).toEqual(Object.keys(examples).sort());
  });

  test('answers its example as the example says', async () => {
    const order = Object.keys(examples);
    const inOrder = operations.toSorted(
      (one, other) => order.indexOf(nameOf(one) ?? '') - order.indexOf(nameOf(other) ?? ''),
    );
    for (const known of inOrder) {
      const [status, json] = Object.entries(exampleOf(known)?.responses ?? {})[0] as [string, object];
      const answer = await send(known);
      expect([nameOf(known), answer.status, answer.json]).toEqual([nameOf(known), Number(status), json]);
    }
  });

  test('needs a token', async () => {
    for (const known of operations) {
      const answer = await send(known, { token: null });
      expectError(answer, 401);
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="plant-store"');
      expectError(await send(known, { token: 'nope' }), 401);
    }
  });

  test('refuses by name what is not an int64 in its path', async () => {
    for (const [known, { name }] of int64Parameters()) {
      for (const value of NO_INT64) {
        const answer = await send(known, { parameters: { [name]: value } });
        expectError(answer, 400, 422);
        expect(answer.json).toMatchObject({
          message: `${name} must be an integer from -9223372036854775808 to 9223372036854775807.`,
        });
      }
    }
    expect(int64Parameters().length).toBeGreaterThanOrEqual(int64);
  });

  test('is answered 503 if the store fails', async () => {
    await service.sql('ALTER TABLE plants RENAME TO elsewhere');
    try {
      for (const known of operations) {
        const answer = await send(known);
        expectError(answer, 503);
        expect(answer.headers['retry-after']).toBe('1');
      }
    } finally {
      await service.sql('ALTER TABLE elsewhere RENAME TO plants');
    }
  });
});
