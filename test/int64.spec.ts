import { expectError, post } from './support/requests.js';
import { countRows, rowOf, startService, unusedId, type TestService } from './support/service.js';

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const ID_RULE = `id must be an integer from ${INT64_MIN} to ${INT64_MAX}`;

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const create = (members: string) => post(service.port, `{${members}}`);

async function expectNothingStored(members: string, error: number, message: string): Promise<void> {
  const before = await countRows(service);
  const answer = await create(members);
  expectError(answer, 400, error);
  expect(answer.json).toHaveProperty('message', `${message}.`);
  expect(await countRows(service)).toBe(before);
}

describe('An id of 64 bits', () => {
  const EDGES = [0n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 62n, INT64_MAX - 1_024n]
    .flatMap((edge) => [edge, -edge])
    .flatMap((edge) => [edge - 1n, edge, edge + 1n]);
  const BOUNDS = [INT64_MIN, INT64_MIN + 1n, INT64_MAX - 1n, INT64_MAX];

  test.each([...new Set([...EDGES, ...BOUNDS])])('is stored as it was sent: %s', async (id) => {
    const answer = await create(`"id":${id},"name":"${id}"`);
    expect([answer.status, answer.text]).toEqual([200, `{"name":"${id}"}`]);
    expect(answer.headers['plant-id']).toBe(`${id}`);
    expect(await rowOf(service, id)).toEqual({ id: `${id}`, name: `${id}`, tag: null });
  });

  test('that the client rounded is visible in Plant-Id, in the answer to the create and to its repeat', async () => {
    const id = 2n ** 61n + 1n;
    const rounded = `${BigInt(Number(id))}`;
    for (let times = 0; times < 2; times++) {
      const { status, headers } = await create(`"id":${rounded},"name":"a"`);
      expect([status, headers['plant-id']]).toEqual([200, rounded]);
    }
    expect((await create(`"id":${rounded},"name":"b"`)).headers).not.toHaveProperty('plant-id');
    expect(rounded).not.toBe(`${id}`);
  });

  test.each([
    ['-0', 0n],
    ['0.0', 0n],
    ['-0.0e-5', 0n],
    ['0e999999999999', 0n],
    ['71.0', 71n],
    ['71.000', 71n],
    ['7.1e1', 71n],
    ['7.1E+1', 71n],
    ['0.71e2', 71n],
    ['0.00071e5', 71n],
    ['71e0', 71n],
    ['710e-1', 71n],
    ['7100000000000000000000000e-23', 71n],
    ['-71.0', -71n],
    ['9007199254740993.0', 2n ** 53n + 1n],
    ['9.007199254740993e15', 2n ** 53n + 1n],
    ['9223372036854775807.0', INT64_MAX],
    ['9.223372036854775807e18', INT64_MAX],
    ['92233720368547758070E-1', INT64_MAX],
    ['-9.223372036854775808e18', INT64_MIN],
    ['1e18', 10n ** 18n],
  ])('is the same in every spelling: %s', async (spelled, id) => {
    const name = `plant ${id}`;
    await service.sql('DELETE FROM plants WHERE id = $1', [`${id}`]);
    expect(await create(`"id":${spelled},"name":"${name}"`)).toMatchObject({
      status: 200,
      headers: { 'plant-id': `${id}` },
    });
    expect(await rowOf(service, id)).toEqual({ id: `${id}`, name, tag: null });
    expect((await create(`"id":${id},"name":"${name}"`)).status).toBe(200);
    expect(await create(`"id":${spelled},"name":"another"`)).toMatchObject({ json: { error: 409 } });
  });

  test.each([2n ** 53n + 4n, 2n ** 60n, INT64_MAX - 100n, INT64_MIN + 100n])(
    'differs from its neighbour, which is the same number in JavaScript: %s',
    async (id) => {
      expect(Number(id)).toBe(Number(id + 1n));
      await create(`"id":${id},"name":"first"`);
      expect((await create(`"id":${id + 1n},"name":"second"`)).status).toBe(200);
      expect((await rowOf(service, id))?.name).toBe('first');
      expect((await rowOf(service, id + 1n))?.name).toBe('second');
    },
  );

  test.each([INT64_MAX - 2n, INT64_MIN + 2n, 2n ** 53n + 7n, -1_000n])('is taken once: %s', async (id) => {
    const plant = `"id":${id},"name":"a","tag":"T"`;
    await create(plant);
    expectError(await create(`"id":${id},"name":"b"`), 400, 409);
    expect((await create(plant)).text).toBe('{"name":"a","tag":"T"}');
    expect(await rowOf(service, id)).toEqual({ id: `${id}`, name: 'a', tag: 'T' });
  });
});

describe('A number that is not an int64', () => {
  test.each([
    INT64_MAX + 1n,
    INT64_MIN - 1n,
    INT64_MAX + 2n,
    2n ** 64n,
    2n ** 64n + 71n,
    -(2n ** 64n),
    10n ** 19n,
    10n ** 30n,
    '1e19',
    '1e30',
    '9.3e18',
    '1e308',
    '1e400',
    '-1e400',
    '1e1000000000',
    `1e${'9'.repeat(400)}`,
    '9'.repeat(400),
    '71.5',
    '-71.5',
    '0.1',
    '1e-1',
    '71e-1',
    '5e-324',
    '1e-400',
    '1e-1000000000',
    `1e-${'9'.repeat(400)}`,
    // A double would round each of these to an integer.
    '9007199254740992.5',
    '9223372036854775806.5',
    '71.00000000000000000000000001',
    '9223372036854775807.000000000000000001',
  ])('is refused and not rounded: %s', (number) =>
    expectNothingStored(`"id":${number},"name":"a"`, 422, `${ID_RULE}, not another number`),
  );
});

describe('A field', () => {
  /** Values of every JSON type. A careless reader would convert some of them. */
  const VALUES: [json: string, type: string][] = [
    ['null', 'null'],
    ['true', 'a boolean'],
    ['false', 'a boolean'],
    ['5', 'a number'],
    ['0', 'a number'],
    ['1.5', 'a number'],
    ['"71"', 'a string'],
    ['"7.1e1"', 'a string'],
    ['""', 'a string'],
    ['"null"', 'a string'],
    ['[]', 'an array'],
    ['[71]', 'an array'],
    ['["a"]', 'an array'],
    ['[[71]]', 'an array'],
    ['{}', 'an object'],
    ['{"value":71}', 'an object'],
    ['{"toString":"a","valueOf":71,"length":1}', 'an object'],
    ['{"$numberLong":"71"}', 'an object'],
  ];
  const FIELDS = [
    { field: 'id', type: 'a number', rule: ID_RULE, others: () => '"name":"a","tag":"T"' },
    { field: 'name', type: 'a string', rule: 'name must be a string', others: () => `"id":${unusedId()}` },
    {
      field: 'tag',
      type: 'a string',
      rule: 'tag must be a string',
      others: () => `"id":${unusedId()},"name":"a"`,
    },
  ];
  const WRONG = FIELDS.flatMap((field) =>
    VALUES.filter(([, type]) => type !== field.type).map(([json, came]) => ({ ...field, json, came })),
  );

  test.each(WRONG)('is not converted: $field as $json', ({ field, json, rule, came, others }) =>
    expectNothingStored(`${others()},"${field}":${json}`, 422, `${rule}, not ${came}`),
  );

  test.each(FIELDS.slice(0, 2))('is required: $field', ({ field, others }) =>
    expectNothingStored(others(), 422, `${field} is required`),
  );

  test.each([
    ['', 'id is required; name is required'],
    ['"tag":null', 'id is required; name is required; tag must be a string, not null'],
    ['"id":1.5,"name":[]', `${ID_RULE}, not another number; name must be a string, not an array`],
    [
      '"id":null,"name":null,"tag":null',
      `${ID_RULE}, not null; name must be a string, not null; tag must be a string, not null`,
    ],
    ['"id":"1","name":"a\\u0000"', `${ID_RULE}, not a string; name must not have the character U+0000`],
  ])('is reported together with the other faults: {%s}', (members, message) =>
    expectNothingStored(members, 422, message),
  );
});

describe('A tag', () => {
  test.each([
    ['omitted', '', '{"name":"a"}', null],
    ['empty', ',"tag":""', '{"name":"a","tag":""}', ''],
    ['a string', ',"tag":"T"', '{"name":"a","tag":"T"}', 'T'],
    ['the word null', ',"tag":"null"', '{"name":"a","tag":"null"}', 'null'],
  ])('is answered as it was sent, to the create and to its repeat: %s', async (_, member, text, stored) => {
    const id = unusedId();
    for (let time = 1; time <= 2; time++) {
      const answer = await create(`"id":${id},"name":"a"${member}`);
      expect([answer.status, answer.text]).toEqual([200, text]);
    }
    expect(await rowOf(service, id)).toEqual({ id: `${id}`, name: 'a', tag: stored });
  });
});
