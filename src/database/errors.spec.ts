import { expect, test } from '@jest/globals';
import { blamesSession, isRetryable } from './errors.js';

const error = (code: string, severity: string) => Object.assign(new Error('gone'), { code, severity });

test.each(['08006', '08003', '57P01'])(
  '%s blames the session if it is FATAL, and may be retried in any case',
  (code) => {
    expect(blamesSession(error(code, 'FATAL'))).toBe(true);
    expect(blamesSession(error(code, 'ERROR'))).toBe(false);
    for (const severity of ['FATAL', 'ERROR']) expect(isRetryable(error(code, severity))).toBe(true);
  },
);

test('25006 (read-only transaction) blames the session at any severity', () => {
  expect(blamesSession(error('25006', 'ERROR'))).toBe(true);
});
