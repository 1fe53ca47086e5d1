import { describe, expect, test } from '@jest/globals';
import { exampleIds, hashInt8, ONE_SHARD, shardMapOf } from './shard-map.js';

const MIN = -(2 ** 31);
const MAX = 2 ** 31 - 1;

// What PostgreSQL 15 answers to `SELECT hashint8(…)`. test/shards.spec.ts compares many more.
test.each([
  [0n, -272711505],
  [1n, -1905060026],
  [-1n, 385747274],
  [71n, 647758067],
  [2147483647n, -96758253],
  [-2147483648n, -1524351049],
  [4294967296n, -1905060026],
  [-4294967297n, -1242090879],
  [9007199254740993n, -1466497253],
  [9223372036854775807n, -1524351049],
  [-9223372036854775808n, -96758253],
])('%d has the hash of PostgreSQL: %d', (id, hash) => {
  expect(hashInt8(id)).toBe(hash);
});

describe('A shard map', () => {
  const rows = [
    { minimum: MIN, maximum: -1_000, group: 7 },
    { minimum: -999, maximum: 0, group: 3 },
    { minimum: 1, maximum: 1_000_000_000, group: 7 },
    { minimum: 1_000_000_001, maximum: MAX, group: 9 },
  ];

  test('puts an id into the shard whose range has its hash, and counts the nodes from 0', () => {
    const { nodes, shardOf } = shardMapOf(rows);
    expect(nodes).toEqual([0, 1, 0, 2]);
    for (let id = -2_000n; id < 2_000n; id++) {
      const hash = hashInt8(id);
      const row = rows[shardOf(id)];
      expect(hash >= (row?.minimum ?? NaN) && hash <= (row?.maximum ?? NaN)).toBe(true);
    }
  });

  test('has an example id in each shard, unless its range is tiny', () => {
    const map = shardMapOf(rows);
    const ids = exampleIds(map);
    expect(ids.map(map.shardOf)).toEqual([0, map.shardOf(ids[1] as bigint), 2, 3]);
    const even = Array.from({ length: 32 }, (_, shard) => ({
      minimum: MIN + shard * 2 ** 27,
      maximum: MIN + (shard + 1) * 2 ** 27 - 1,
      group: shard % 3,
    }));
    const evenMap = shardMapOf(even);
    expect(exampleIds(evenMap).map(evenMap.shardOf)).toEqual([...Array(32).keys()]);
  });

  test.each([
    ['no rows, because the table is not distributed', []],
    ['one shard', [{ minimum: MIN, maximum: MAX, group: 1 }]],
  ])('is ONE_SHARD for %s', (_, few) => {
    expect(shardMapOf(few)).toBe(ONE_SHARD);
    expect(exampleIds(ONE_SHARD)).toEqual([0n]);
  });
});
