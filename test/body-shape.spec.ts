import { converse } from './support/connection.js';
import { expectError, post, type Answer, type Bytes } from './support/requests.js';
import { countRows, rowOf, startService, TOKEN, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/** Expects an Error, and as many rows as before. */
async function expectRefusal(answer: Answer, error: number, message: string, before: number): Promise<void> {
  expectError(answer, 400, error);
  expect(answer.json).toHaveProperty('message', message);
  expect(await countRows(service)).toBe(before);
}

async function expectRefused(body: Bytes, error: number, message: string): Promise<void> {
  const before = await countRows(service);
  await expectRefusal(await post(service.port, body), error, message, before);
}

async function expectCreated(id: bigint, body: string): Promise<void> {
  const answer = await post(service.port, body);
  expect([answer.status, answer.text]).toEqual([200, '{"name":"a"}']);
  expect(await rowOf(service, id)).toEqual({ id: `${id}`, name: 'a', tag: null });
}

describe('A body that is not an object', () => {
  const EMPTY = 'The body is empty; it must be a JSON object.';

  test.each([
    ['[]', 'an array'],
    ['[{"id":71,"name":"a"}]', 'an array'],
    ['[[["id",71],["name","a"]]]', 'an array'],
    ['null', 'null'],
    ['true', 'a boolean'],
    ['false', 'a boolean'],
    ['0', 'a number'],
    ['-0', 'a number'],
    ['5', 'a number'],
    ['1.5', 'a number'],
    ['1e400', 'a number'],
    ['""', 'a string'],
    ['"x"', 'a string'],
    ['"{\\"id\\":71,\\"name\\":\\"a\\"}"', 'a string'],
    [' \t\r\n5 \t\r\n', 'a number'],
  ])('is refused with the type that it has: %j', (body, type) =>
    expectRefused(body, 422, `The body must be a JSON object, not ${type}.`),
  );

  test.each(['', ' ', '  ', '\t\r\n', '\n'.repeat(10_000)])('is refused as empty: %j', (body) =>
    expectRefused(body, 400, EMPTY),
  );

  test.each([
    ['neither length nor coding', ''],
    ['a length of 0', 'Content-Length: 0\r\n'],
    ['no chunk', 'Transfer-Encoding: chunked\r\n', '0\r\n\r\n'],
    ['no chunk and a trailer', 'Transfer-Encoding: chunked\r\n', '0\r\nX: {"id":71,"name":"a"}\r\n\r\n'],
  ])('is refused as empty with %s', async (_, lines, body = '') => {
    const before = await countRows(service);
    const head =
      'POST /plants HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' +
      `Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n${lines}\r\n`;
    const [answer] = await converse(service.port, [head + body]);
    await expectRefusal(answer as Answer, 400, EMPTY, before);
  });
});

describe('Nesting', () => {
  const LIMIT = 1_000;
  /** The opening and closing texts, and how many levels they are. */
  const SHAPES: [shape: string, open: string, close: string, each: number][] = [
    ['arrays', '[', ']', 1],
    ['objects', '{"a":', '}', 1],
    ['arrays of objects', '[{"":', '}]', 2],
    ['arrays beside brackets in strings', '["]",', ',"["]', 1],
    ['objects beside brackets in strings', '{"}":"\\"{","{":', ',"\\\\":"}"}', 1],
  ];
  const nested = (levels: number, open: string, close: string, each = 1) =>
    `${open.repeat(levels / each)}0${close.repeat(levels / each)}`;

  test.each(SHAPES)('of %s is ignored up to 1,000 levels', async (_, open, close, each) => {
    for (const levels of [2, 100, LIMIT]) {
      const id = unusedId();
      await expectCreated(id, `{"x":${nested(levels, open, close, each)},"id":${id},"name":"a"}`);
    }
  });

  test.each(SHAPES)('of %s is refused beyond 1,000 levels', async (_, open, close, each) => {
    for (const levels of [LIMIT + 2, 2_000, 3_000, 8_000, 16_000]) {
      const deep = nested(levels, open, close, each);
      const message = `The body is nested deeper than ${LIMIT} levels.`;
      await expectRefused(`{"id":${unusedId()},"name":"a","x":${deep}}`, 400, message);
      await expectRefused(`{"id":${unusedId()},"name":${deep}}`, 400, message);
      await expectRefused(`[${deep}]`, 400, message);
    }
  });

  test('is counted exactly', async () => {
    const id = unusedId();
    await expectCreated(id, `{"id":${id},"name":"a","x":${nested(LIMIT, '[', ']')}}`);
    await expectRefused(
      `{"id":${unusedId()},"name":"a","x":${nested(LIMIT + 1, '[', ']')}}`,
      400,
      `The body is nested deeper than ${LIMIT} levels.`,
    );
  });

  test.each(SHAPES)('of %s in a field is refused with its type', async (_, open, close, each) => {
    const type = open.startsWith('[') ? 'an array' : 'an object';
    const deep = nested(LIMIT, open, close, each);
    await expectRefused(`{"id":${unusedId()},"name":${deep}}`, 422, `name must be a string, not ${type}.`);
    await expectRefused(
      `{"id":${unusedId()},"name":"a","tag":${deep}}`,
      422,
      `tag must be a string, not ${type}.`,
    );
    await expectRefused(
      `{"id":${deep},"name":"a"}`,
      422,
      `id must be an integer from -9223372036854775808 to 9223372036854775807, not ${type}.`,
    );
  });

  test.each([
    ['opened', '['],
    ['opened as objects', '{"a":'],
    ['closed', ']'],
    ['closed as objects', '}'],
  ])('that is only %s is refused', async (_, bracket) => {
    for (const levels of [1, LIMIT, 100_000]) {
      const isDeep = levels > LIMIT && /[[{]/.test(bracket);
      const message = isDeep
        ? `The body is nested deeper than ${LIMIT} levels.`
        : 'The body is not valid JSON.';
      await expectRefused(bracket.repeat(levels), 400, message);
    }
  });
});

describe('A member with a name that JavaScript gives a meaning', () => {
  /** Names of properties of objects, arrays, functions, promises and this service's own objects, and names like them. */
  const NAMES = [
    ...['__proto__', 'constructor', 'prototype', '__defineGetter__', '__lookupGetter__'],
    ...['hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable', 'toString', 'toLocaleString', 'valueOf'],
    ...['toJSON', 'then', 'catch', 'finally', 'length', 'get', 'set', 'has', 'size', 'forEach', 'entries'],
    ...['id ', 'ID', 'Name', 'created_at', 'createdAt', '', '0', '-1', 'null', 'undefined', 'NaN'],
  ];

  test.each(NAMES)('is ignored like any other: %j', async (name) => {
    for (const value of ['1', 'null', '"b"', '{"name":"b","p":1}', '[{"q":1}]', '{"prototype":{"p":1}}']) {
      const id = unusedId();
      await expectCreated(id, `{"${name}":${value},"id":${id},"name":"a"}`);
    }
    expect(({} as { p?: unknown }).p).toBeUndefined();
    expect(({} as { q?: unknown }).q).toBeUndefined();
  });

  test('is ignored if the body has all of them', async () => {
    const id = unusedId();
    const members = NAMES.map((name) => `"${name}":{"p":1,"name":"b","tag":"b","id":1}`).join();
    await expectCreated(id, `{"id":${id},${members},"name":"a"}`);
    expect(({} as { p?: unknown }).p).toBeUndefined();
  });

  test.each(['__proto__', '\\u005f_proto__', 'constructor', 'prototype'])(
    'sets no field of the plant: %s',
    async (name) => {
      const inherited = `"${name}":{"id":71,"name":"a","tag":"T"}`;
      await expectRefused(`{"id":${unusedId()},${inherited}}`, 422, 'name is required.');
      await expectRefused(`{"name":"a",${inherited}}`, 422, 'id is required.');
      await expectRefused(`{${inherited}}`, 422, 'id is required; name is required.');
      const id = unusedId();
      await expectCreated(id, `{"id":${id},"name":"a",${inherited}}`);
    },
  );
});

describe('A name that appears twice', () => {
  test.each([
    ['id', '"id":1,"name":"a","id":2'],
    ['id', '"id":9007199254740992,"name":"a","id":9007199254740993'],
    ['id', '"id":1,"name":"a","id":"1"'],
    ['id', '"id":1,"name":"a","id":null'],
    ['name', '"id":1,"name":"a","name":"b"'],
    ['name', '"id":1,"name":"a","n\\u0061me":"b"'],
    ['name', '"id":1,"name":"a","name":"A"'],
    ['name', '"id":1,"name":"\u00e9","name":"e\u0301"'],
    ['tag', '"id":1,"name":"a","tag":null,"tag":"T"'],
    ['tag', '"id":1,"name":"a","tag":"","tag":" "'],
    ['A member', '"id":1,"name":"a","x":1,"x":2'],
    ['A member', '"id":1,"name":"a","__proto__":{"a":1},"__proto__":{"a":2}'],
    ['A member', '"id":1,"name":"a","":true,"":false'],
    ['A member', '"id":1,"name":"a","x":1.5,"x":1.6'],
    ['A member', '"id":1,"name":"a","x":[1],"x":[2]'],
  ])('with two values is refused: %s in {%s}', (name, members) =>
    expectRefused(`{${members}}`, 400, `${name} appears twice in the body with different values.`),
  );

  test.each([
    ['the same integer in one spelling', (id: bigint) => `"id":${id},"name":"a","id":${id}`],
    ['the same integer in two spellings', (id: bigint) => `"id":${id},"name":"a","id":${id}.0`],
    ['the same text', (id: bigint) => `"name":"a","id":${id},"name":"a"`],
    ['the same text, escaped', (id: bigint) => `"name":"a","id":${id},"name":"\\u0061"`],
    ['the name escaped', (id: bigint) => `"name":"a","id":${id},"\\u006eame":"a"`],
    ['three times', (id: bigint) => `"name":"a","name":"a","id":${id},"name":"a"`],
    ['null twice', (id: bigint) => `"x":null,"name":"a","id":${id},"x":null`],
    ['an object twice', (id: bigint) => `"x":{"y":[1]},"name":"a","id":${id},"x":{"y":[1]}`],
  ])('with one value is one member: %s', (_, members) => {
    const id = unusedId();
    return expectCreated(id, `{${members(id)}}`);
  });

  test.each(['{"a":1,"a":2}', '[{"name":"b","name":"c"}]', '{"id":{"id":1,"id":2}}'])(
    'inside an ignored member is ignored: %s',
    (value) => {
      const id = unusedId();
      return expectCreated(id, `{"id":${id},"x":${value},"name":"a"}`);
    },
  );
});

describe('A body that is not JSON', () => {
  /** A parser's own message would repeat it. */
  const SECRET = 'hunter2';

  test.each([
    `{"id":1,"name":${SECRET}}`,
    `{"id":1,"name":"${SECRET}"`,
    `{"id":1,"name":"${SECRET}}`,
    `{"id":1,"name":"${SECRET}",}`,
    `{"id":1,,"name":"${SECRET}"}`,
    `{,"id":1,"name":"${SECRET}"}`,
    `{"id":1 "name":"${SECRET}"}`,
    `{"id" 1,"name":"${SECRET}"}`,
    `{"id":1,"name":'${SECRET}'}`,
    `{'id':1,"name":"${SECRET}"}`,
    `{id:1,name:"${SECRET}"}`,
    `{"id":1,"name":\`${SECRET}\`}`,
    `{"id":1,"name":"${SECRET}"}}`,
    `{"id":1,"name":"${SECRET}"}]`,
    `{"id":1,"name":"${SECRET}"} ${SECRET}`,
    `{"id":1,"name":"${SECRET}"}{"id":1,"name":"${SECRET}"}`,
    `{"id":1,"name":"${SECRET}"}\n{"id":2,"name":"b"}`,
    `{"id":1,"name":"${SECRET}"};`,
    `{"id":1,"name":"${SECRET}"}\0`,
    `\0{"id":1,"name":"${SECRET}"}`,
    `)]}',\n{"id":1,"name":"${SECRET}"}`,
    `// ${SECRET}\n{"id":1,"name":"a"}`,
    `{"id":1,/* ${SECRET} */"name":"a"}`,
    `{"id":1,"name":"a" # ${SECRET}\n}`,
    `{"id":1,"name":"a",...${SECRET}}`,
    `{"id":1,"name":"a","x":[1,2,]}`,
    `{"id":1,"name":"a","x":[,]}`,
    `{"id":1,"name":"${SECRET}\n"}`,
    `{"id":1,"name":"${SECRET}\t"}`,
    `{"id":1,"name":"${SECRET}\u0001"}`,
    `{"id":1,"name":"${SECRET}\\x41"}`,
    `{"id":1,"name":"${SECRET}\\u00"}`,
    `{"id":1,"name":"${SECRET}\\u{41}"}`,
    `{"id":1,"name":"${SECRET}\\'"}`,
    `{"id":1,"name":"${SECRET}\\`,
    `id=1&name=${SECRET}`,
    `<plant><id>1</id><name>${SECRET}</name></plant>`,
    `id: 1\nname: ${SECRET}\n`,
    `--${SECRET}\r\nContent-Disposition: form-data; name="id"\r\n\r\n1\r\n--${SECRET}--`,
    ...['NaN', 'Infinity', '-Infinity', 'undefined', 'True', 'nul', 'TRUE', 'None', 'new Date()'],
    ...[
      '0x10',
      '010',
      '-010',
      '+1',
      '.5',
      '5.',
      '1e',
      '1e+',
      '1.e1',
      '--1',
      '1_000',
      '1,5',
      '71n',
      '- 1',
      '٣',
    ],
  ])('is refused with one message that repeats nothing: %j', async (body) => {
    const message = 'The body is not valid JSON.';
    await expectRefused(body, 400, message);
    if (!body.includes('{')) await expectRefused(`{"id":${body},"name":"a"}`, 400, message);
    expect(service.logs()).not.toContain(SECRET);
  });
});

test('After all of these the service works', async () => {
  const id = unusedId();
  await expectCreated(id, `{"id":${id},"name":"a"}`);
  expect(service.logs()).not.toMatch(/"level":[456]0/);
});
