import { expect, test } from '@jest/globals';
import { blamesSession, isRetryable, isValueError, maySucceedLater } from './errors.js';

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

test.each([
  ['too many connections', '53300'],
  ['a full disk', '53100'],
  ['a shutdown', '57P01'],
  ['a crash', '57P02'],
  ['a start of the server', '57P03'],
  ['a standby that is not promoted yet', '25006'],
  ['a lost connection', '08006'],
  ["the server's own time limit", '57014'],
  ['a lock that is not available', '55P03'],
  ['a deadlock', '40P01'],
  ['a serialization failure', '40001'],
])('A start waits for the end of %s (%s)', (_, code) => {
  expect(maySucceedLater(error(code, 'FATAL'))).toBe(true);
});

test.each(['28P01', '3D000', '42501'])('A start does not wait if somebody must act (%s)', (code) => {
  expect(maySucceedLater(error(code, 'FATAL'))).toBe(false);
});

test.each([
  'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string',
  'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a non-empty string',
  'The server does not support SSL connections',
])('A start does not wait if the configuration is wrong: %s', (message) => {
  expect(maySucceedLater(new Error(message))).toBe(false);
});

test.each(['40001', '40P01'])('After %s the statement may succeed in the same session', (code) => {
  expect(isRetryable(error(code, 'ERROR'))).toBe(true);
  expect(blamesSession(error(code, 'ERROR'))).toBe(false);
});

test.each(['22003', '23514', '54000', 'P0001'])('%s blames the values, and is not tried again', (code) => {
  expect(isValueError(error(code, 'ERROR'))).toBe(true);
  expect(isRetryable(error(code, 'ERROR'))).toBe(false);
});
