import { pino } from 'pino';
import { Shards } from './shards.js';

const TWO = [
  { minimum: -(2 ** 31), maximum: -1, group: 1 },
  { minimum: 0, maximum: 2 ** 31 - 1, group: 2 },
];

test('A statement that fails on a shard that is gone does not count', () => {
  const shards = new Shards(() => Promise.resolve(), pino({ level: 'silent' }));
  shards.use(TWO);
  expect(shards.count).toBe(2);
  shards.use([]);
  shards.failed(1);
  expect([shards.count, shards.writable, shards.haveJustFailed]).toEqual([1, 1, false]);
});
