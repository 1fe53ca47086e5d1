import { prettyLine } from './pretty-line.js';
import { serializeError, withoutSecrets } from './serialize-error.js';

describe('withoutSecrets()', () => {
  test.each([
    ['https://issuer.example/keys?key=SECRET', 'https://issuer.example/keys'],
    ['https://user:SECRET@issuer.example:8443/keys#SECRET', 'https://issuer.example:8443/keys'],
    ['postgres://user:SECRET@db.example:5432/plants', 'postgres://db.example:5432/plants'],
    ['postgres://user:SEC?RET@db.example/plants', '[address]'],
    ['postgres://user:SEC/RET@db.example/plants', '[address]'],
    ['HTTPS://u:SECRET@h/?a=b@SECRET', 'https://h/'],
  ])('removes the secrets of %s', (address, shown) => {
    expect(withoutSecrets(`fetch of <${address}> failed, "${address}" twice`)).toBe(
      `fetch of <${shown}> failed, "${shown}" twice`,
    );
  });

  test('keeps the paths of files in a stack', () => {
    const stack = 'Error: a\n    at file:///app/node_modules/@nestjs/core/a.js:1:2';
    expect(withoutSecrets(stack)).toBe(stack);
  });

  test('applies to the message, the stack and the causes of an error', () => {
    const cause = new Error('no https://u:SECRET@h/keys');
    const serialized = JSON.stringify(serializeError(new Error('postgres://u:SECRET@h/d', { cause })));
    expect(serialized).not.toContain('SECRET');
    expect(serialized).toContain('https://h/keys');
  });
});

describe('serializeError()', () => {
  test.each(['22P02', '23514', '44000', 'P0001'])(
    'leaves out the text of a database error that may repeat a value: %s',
    (code) => {
      const error = Object.assign(new Error('SECRET'), { code, constraint: 'no_weeds', detail: 'SECRET' });
      const serialized = serializeError(error);
      expect(serialized).toMatchObject({ code, constraint: 'no_weeds' });
      expect(JSON.stringify(serialized)).not.toContain('SECRET');
    },
  );

  test('keeps the text of any other database error', () => {
    const error = Object.assign(new Error('relation does not exist'), { code: '42P01' });
    expect(serializeError(error)).toMatchObject({ code: '42P01', message: 'relation does not exist' });
  });
});

describe('A log line for a terminal', () => {
  const line = (members: object) =>
    prettyLine(JSON.stringify({ time: 0, pid: 1, hostname: 'h', ...members }));

  test('has the time, the level, the message and the members', () => {
    const text = line({
      level: 40,
      msg: 'Log lines were dropped',
      lines: 3,
      route: '/plants',
      err: undefined,
    });
    expect(text).toMatch(/^\d\d:\d\d:\d\d WARN {2}Log lines were dropped lines=3 route=\/plants\n$/);
  });

  test('has the stack of an error on lines of its own, and only the message of a warning', () => {
    const err = { message: 'no', stack: 'Error: no\n    at a.js:1:2' };
    expect(line({ level: 50, msg: 'Failed', err })).toMatch(
      /ERROR Failed\n {2}Error: no\n {6}at a\.js:1:2\n$/,
    );
    expect(line({ level: 40, msg: 'Waiting', err })).toMatch(/WARN {2}Waiting: no\n$/);
    expect(line({ level: 40, msg: 'Waiting', err: { message: '', code: 'ECONNREFUSED' } })).toMatch(
      /WARN {2}Waiting: ECONNREFUSED\n$/,
    );
  });

  test('has no control characters', () => {
    expect(line({ level: 30, msg: 'request', subject: '\u001b[2J\u009b1m\r\n' })).toMatch(
      / subject=\ufffd\[2J\ufffd1m\ufffd\ufffd\n$/u,
    );
  });
});
