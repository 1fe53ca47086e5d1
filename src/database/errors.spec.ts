import { expect, test } from '@jest/globals';
import { blamesSession, isRetryable } from './errors.js';

const error = (code: string, severity: string) => Object.assign(new Error('gone'), { code, severity });

test.each(['08006', '08003', '57P01'])(
  '%s is the end of the session if it is fatal, and of a connection behind the server if not',
  (code) => {
    expect(blamesSession(error(code, 'FATAL'))).toBe(true);
    expect(blamesSession(error(code, 'ERROR'))).toBe(false);
    for (const severity of ['FATAL', 'ERROR']) expect(isRetryable(error(code, severity))).toBe(true);
  },
);

test('a session that takes no writes is at fault whatever its severity', () => {
  expect(blamesSession(error('25006', 'ERROR'))).toBe(true);
});
