import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { StoreUnavailable, ValuesRefused } from '../database/errors.js';
import {
  FIXED_LIMITS,
  GroupCommit,
  type CreateResult,
  type GroupCommitLimits,
  type WrittenRow,
} from './group-commit.js';
import { toStored, type StoredPlant } from './plant.columns.js';

const LIMITS: GroupCommitLimits = {
  batchRows: 4,
  batchCharacters: 100,
  statementsPerNode: 1,
  statements: 1,
  joinMs: 20,
  waitingCreates: 8,
  waitingCharacters: 400,
  timeoutMs: 1_000,
};

const REFUSED_NAME = 'refused';

/** A statement that was sent, until the test lets the database answer it. */
interface Statement {
  lane: number;
  plants: StoredPlant[];
  deadline: number;
  /** Executes the statement. The database refuses all of it if one of its plants has REFUSED_NAME. */
  answer: () => void;
  fail: (error: Error) => void;
}

/** A group commit over a table in memory. The statements wait for the test. */
function handDriven(limits: Partial<GroupCommitLimits> = {}) {
  const table = new Map<bigint, StoredPlant>();
  const underWay: Statement[] = [];
  const sent: bigint[][] = [];
  const commits = new GroupCommit(
    (plants, deadline, lane) => {
      sent.push(plants.map(({ id }) => id));
      return new Promise((resolve, reject) => {
        const settle = (act: () => void) => () => {
          underWay.splice(underWay.indexOf(statement), 1);
          act();
        };
        const statement: Statement = {
          lane,
          plants,
          deadline,
          answer: settle(() => {
            if (plants.some(({ name }) => name === REFUSED_NAME))
              reject(new ValuesRefused(new Error('refused')));
            else resolve(plants.map((plant) => insert(table, plant)));
          }),
          fail: (error) => settle(() => reject(error))(),
        };
        underWay.push(statement);
      });
    },
    { ...LIMITS, ...limits },
  );
  return { commits, table, underWay, sent };
}

function insert(table: Map<bigint, StoredPlant>, plant: StoredPlant): WrittenRow {
  const stored = table.get(plant.id);
  if (stored !== undefined) return { isNew: false, stored };
  table.set(plant.id, plant);
  return { isNew: true, stored: plant };
}

const plant = (id: number, name = `plant ${id}`): StoredPlant => toStored({ id: BigInt(id), name });

/** Runs everything that waits for neither a timer nor a statement. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
};

/** Answers all statements, the oldest first. */
async function answerAll({ underWay }: { underWay: Statement[] }): Promise<void> {
  for (let statement = underWay[0]; statement !== undefined; statement = underWay[0]) {
    statement.answer();
    await settle();
  }
}

// Timers only advance when a test advances them.
beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('Batches', () => {
  test('a lone create is sent at once', () => {
    const { commits, sent } = handDriven();
    void commits.create(plant(1));
    expect(sent).toEqual([[1n]]);
    expect(commits.waiting).toBe(0);
  });

  test('creates that arrive during a statement are sent together in the next one', async () => {
    const driven = handDriven();
    const results = [1, 2, 3, 4].map((id) => driven.commits.create(plant(id)));
    expect(driven.sent).toEqual([[1n]]);
    expect(driven.commits.waiting).toBe(3);
    await answerAll(driven);
    expect(driven.sent).toEqual([[1n], [2n, 3n, 4n]]);
    expect(await Promise.all(results)).toEqual(Array(4).fill('created'));
    expect([...driven.table.keys()]).toEqual([1n, 2n, 3n, 4n]);
  });

  test('no more statements are in flight than the limit', async () => {
    const driven = handDriven({ statementsPerNode: 2, statements: 2 });
    for (const id of [1, 2, 3, 4]) void driven.commits.create(plant(id));
    expect(driven.sent).toEqual([[1n], [2n]]);
    driven.underWay[1]?.answer();
    await settle();
    expect(driven.sent).toEqual([[1n], [2n], [3n, 4n]]);
  });

  test('a statement that leaves while another is in flight has as many rows', async () => {
    const driven = handDriven({ statementsPerNode: 2, statements: 2 });
    for (const id of [1, 2, 3, 4, 5]) void driven.commits.create(plant(id));
    driven.underWay[0]?.answer();
    await settle();
    expect(driven.sent).toEqual([[1n], [2n], [3n, 4n, 5n]]);
    driven.underWay[0]?.answer();
    await settle();
    for (const id of [6, 7]) void driven.commits.create(plant(id));
    expect(driven.sent).toHaveLength(3);
    void driven.commits.create(plant(8));
    expect(driven.sent.at(-1)).toEqual([6n, 7n, 8n]);
  });

  test('a create waits only for a limited time for others to join it', async () => {
    const driven = handDriven({ statementsPerNode: 2, statements: 2 });
    for (const id of [1, 2, 3, 4]) void driven.commits.create(plant(id));
    driven.underWay[0]?.answer();
    await settle();
    driven.underWay[0]?.answer();
    await settle();
    expect(driven.sent).toEqual([[1n], [2n], [3n, 4n]]);
    // Not at a moment for which the timer is set.
    jest.advanceTimersByTime(LIMITS.joinMs / 2);
    void driven.commits.create(plant(5));
    jest.advanceTimersByTime(LIMITS.joinMs - 1);
    expect(driven.sent).toHaveLength(3);
    jest.advanceTimersByTime(1);
    expect(driven.sent.at(-1)).toEqual([5n]);
  });

  test('a statement has no more rows than the limit', async () => {
    const driven = handDriven({ batchRows: 2 });
    const results = [1, 2, 3, 4, 5, 6].map((id) => driven.commits.create(plant(id)));
    await answerAll(driven);
    expect(driven.sent.map((ids) => ids.length)).toEqual([1, 2, 2, 1]);
    expect(await Promise.all(results)).toEqual(Array(6).fill('created'));
  });

  test('a statement has no more characters than the limit, and a larger plant is sent alone', async () => {
    const driven = handDriven({ batchCharacters: 10 });
    const names = ['first', 'aaaaa', 'bbbbb', 'c', 'far beyond ten characters', 'd'];
    const results = names.map((name, id) => driven.commits.create(plant(id, name)));
    await answerAll(driven);
    expect(driven.sent).toEqual([[0n], [1n, 2n], [3n], [4n], [5n]]);
    expect(await Promise.all(results)).toEqual(Array(6).fill('created'));
  });

  test('a statement has its plants in ascending order of their ids, and each create gets its own result', async () => {
    const driven = handDriven();
    driven.table.set(-2n, plant(-2, 'of old'));
    const results = [0, 9, -2, 10].map((id) => driven.commits.create(plant(id)));
    await answerAll(driven);
    expect(driven.sent).toEqual([[0n], [-2n, 9n, 10n]]);
    expect(await Promise.all(results)).toEqual(['created', 'created', 'conflict', 'created']);
  });
});

describe('An id that is twice in a batch', () => {
  test.each<[string, StoredPlant, CreateResult]>([
    ['with the same plant is one row, created once', plant(2), 'repeated'],
    ['with another name is a conflict', plant(2, 'another'), 'conflict'],
    ['with another tag is a conflict', { ...plant(2), tag: '' }, 'conflict'],
  ])('%s', async (_, second, expected) => {
    const driven = handDriven();
    const results = [plant(1), plant(2), second].map((each) => driven.commits.create(each));
    await answerAll(driven);
    expect(driven.sent).toEqual([[1n], [2n]]);
    expect(await Promise.all(results)).toEqual(['created', 'created', expected]);
    expect(driven.table.get(2n)).toEqual(plant(2));
  });

  test('is compared with the stored plant for each create', async () => {
    const driven = handDriven();
    driven.table.set(2n, plant(2, 'of old'));
    const results = [plant(1), plant(2), plant(2, 'of old')].map((each) => driven.commits.create(each));
    await answerAll(driven);
    expect(await Promise.all(results)).toEqual(['created', 'conflict', 'repeated']);
  });
});

describe('Failures', () => {
  test.each([
    { ids: [1, 2, 3, 4], refused: [1] },
    { ids: [1, 2, 3, 4], refused: [4] },
    { ids: [1, 2, 3], refused: [2] },
    { ids: [1, 2, 3, 4], refused: [2, 3] },
    { ids: [1, 2], refused: [1, 2] },
  ])('of $ids, a refused row fails alone: $refused', async ({ ids, refused }) => {
    const driven = handDriven();
    void driven.commits.create(plant(0));
    const results = ids.map((id) =>
      driven.commits.create(refused.includes(id) ? plant(id, REFUSED_NAME) : plant(id)),
    );
    const outcomes = Promise.allSettled(results);
    await answerAll(driven);
    expect((await outcomes).map(({ status }) => status)).toEqual(
      ids.map((id) => (refused.includes(id) ? 'rejected' : 'fulfilled')),
    );
    for (const outcome of await outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(ValuesRefused);
    }
    expect(driven.table.size).toBe(1 + ids.length - refused.length);
  });

  test('a refused row does not fail another plant with its id', async () => {
    const driven = handDriven();
    const results = [plant(1), plant(2, REFUSED_NAME), plant(2)].map((each) => driven.commits.create(each));
    const outcomes = Promise.allSettled(results);
    await answerAll(driven);
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(driven.table.get(2n)).toEqual(plant(2));
  });

  test('a failing statement rejects every create of its batch with its error, and the next one is sent', async () => {
    const driven = handDriven({ batchRows: 3 });
    const results = [1, 2, 3, 4, 5].map((id) => driven.commits.create(plant(id)));
    const outcomes = Promise.allSettled(results);
    driven.underWay[0]?.answer();
    await settle();
    const failure = new StoreUnavailable('gone');
    driven.underWay[0]?.fail(failure);
    await settle();
    await answerAll(driven);
    expect(driven.sent).toEqual([[1n], [2n, 3n, 4n], [5n]]);
    const ended = (await outcomes).map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as unknown),
    );
    expect(ended).toEqual(['created', failure, failure, failure, 'created']);
  });

  test('a result without one of the rows rejects that create', async () => {
    const commits = new GroupCommit(() => Promise.resolve([]), LIMITS);
    const result = expect(commits.create(plant(1))).rejects.toThrow('without one of its rows');
    await result;
  });
});

describe('The queue', () => {
  test.each([
    ['creates', { waitingCreates: 2 }, 'a name'],
    ['characters', { waitingCharacters: 12 }, 'a name'],
  ])('is bounded in %s: only a create beyond the bound is refused, at once', async (_, limits, name) => {
    const driven = handDriven(limits);
    const taken = [1, 2, 3].map((id) => driven.commits.create(plant(id, name)));
    await expect(driven.commits.create(plant(4, name))).rejects.toThrow(StoreUnavailable);
    await answerAll(driven);
    expect(await Promise.all(taken)).toEqual(Array(3).fill('created'));
    expect(driven.sent.flat()).toEqual([1n, 2n, 3n]);
    const later = driven.commits.create(plant(5, name));
    await answerAll(driven);
    expect(await later).toBe('created');
  });

  // Without a bound that memory can hold, a store that hangs would end the service.
  test.each([
    ['creates', 2_048, 'a'],
    ['MiB of text', 16, 'x'.repeat(1024 * 1024)],
  ])('of the service holds %s: %d', async (_, bound, name) => {
    const driven = handDriven({ ...FIXED_LIMITS, statements: FIXED_LIMITS.statementsPerNode });
    const create = (id: number) => driven.commits.create(plant(id, name));
    // They keep every statement in use.
    void create(-1);
    void create(-2);
    const taken = Array.from({ length: bound }, (_, id) => create(id));
    expect(driven.commits.waiting).toBe(bound);
    const refused = expect(create(bound)).rejects.toThrow(StoreUnavailable);
    await answerAll(driven);
    await refused;
    expect(await Promise.all(taken)).toEqual(Array(bound).fill('created'));
  });

  test('accepts a plant larger than its bound if it is empty', async () => {
    const driven = handDriven({ waitingCharacters: 12 });
    const name = 'x'.repeat(100);
    const taken = [1, 2].map((id) => driven.commits.create(plant(id, name)));
    await expect(driven.commits.create(plant(3, 'y'))).rejects.toThrow(StoreUnavailable);
    await answerAll(driven);
    expect(await Promise.all(taken)).toEqual(['created', 'created']);
  });

  test('does not depend on the wall clock', async () => {
    const driven = handDriven();
    void driven.commits.create(plant(1));
    jest.setSystemTime(Date.now() - 3_600_000);
    const second = expect(driven.commits.create(plant(2))).rejects.toThrow(StoreUnavailable);
    jest.setSystemTime(Date.now() + 7_200_000);
    driven.commits.create(plant(3)).catch(() => undefined);
    expect(driven.commits.waiting).toBe(2);
    jest.setSystemTime(Date.now() - 7_200_000);
    jest.advanceTimersByTime(LIMITS.timeoutMs / 2);
    await second;
    expect(driven.commits.waiting).toBe(0);
    await answerAll(driven);
  });

  test('rejects a create after half of the time limit, and then does not send it', async () => {
    const driven = handDriven();
    const first = driven.commits.create(plant(1));
    jest.advanceTimersByTime(200);
    const second = expect(driven.commits.create(plant(2))).rejects.toThrow(StoreUnavailable);
    jest.advanceTimersByTime(200);
    const third = expect(driven.commits.create(plant(3))).rejects.toThrow(StoreUnavailable);
    jest.advanceTimersByTime(200);
    const fourth = driven.commits.create(plant(4));
    jest.advanceTimersByTime(100);
    await second;
    expect(driven.commits.waiting).toBe(2);
    jest.advanceTimersByTime(200);
    await third;
    await answerAll(driven);
    expect(await Promise.all([first, fourth])).toEqual(['created', 'created']);
    expect(driven.sent).toEqual([[1n], [4n]]);
  });

  test('gives a statement the deadline of the create that waited longest', async () => {
    const driven = handDriven();
    const begun = performance.now();
    for (const id of [1, 2, 3]) {
      void driven.commits.create(plant(id));
      jest.advanceTimersByTime(100);
    }
    expect(driven.underWay[0]?.deadline).toBe(begun + LIMITS.timeoutMs);
    driven.underWay[0]?.answer();
    await settle();
    expect(driven.underWay[0]?.deadline).toBe(begun + 100 + LIMITS.timeoutMs);
  });
});

describe('Lanes', () => {
  /** A lane for each last digit of an id. @param nodes the node of each lane. */
  function withLanes(nodes: number[], limits: Partial<GroupCommitLimits> = {}) {
    const driven = handDriven({ statementsPerNode: 2, statements: 2, ...limits });
    driven.commits.useShards({ nodes, shardOf: (id) => Number(id % 10n) });
    /** Creates at a later moment than the one before. */
    const create = (id: number, name?: string) => {
      jest.advanceTimersByTime(1);
      return driven.commits.create(plant(id, name));
    };
    const answer = async (...ids: bigint[]) => {
      driven.underWay.find(({ plants }) => String(plants.map(({ id }) => id)) === String(ids))?.answer();
      await settle();
    };
    return { ...driven, create, answer };
  }

  test('a statement holds plants of one lane, and says which', async () => {
    const driven = withLanes([0, 0, 0], { statements: 1 });
    const results = [10, 11, 12, 20, 21, 22, 30].map((id) => driven.create(id));
    const lanes: number[] = [];
    while (driven.underWay.length > 0) {
      lanes.push(driven.underWay[0]?.lane as number);
      driven.underWay[0]?.answer();
      await settle();
    }
    expect(driven.sent).toEqual([[10n], [11n, 21n], [12n, 22n], [20n, 30n]]);
    expect(lanes).toEqual([0, 1, 2, 0]);
    expect(await Promise.all(results)).toEqual(Array(7).fill('created'));
  });

  test('the lane whose first create waited longest is next, not the longest lane', async () => {
    const driven = withLanes([0, 0, 0], { statements: 1 });
    void driven.create(10);
    for (const id of [12, 11, 21, 31, 20, 22]) void driven.create(id);
    await answerAll(driven);
    expect(driven.sent).toEqual([[10n], [12n, 22n], [11n, 21n, 31n], [20n]]);
  });

  test('a create in an idle lane still waits if every statement is in use', () => {
    const driven = withLanes([0, 0, 0]);
    for (const id of [10, 11, 12]) void driven.create(id);
    expect(driven.sent).toEqual([[10n], [11n]]);
    expect(driven.commits.waiting).toBe(1);
  });

  test('each node gets a share of the statements, at least one and at most statementsPerNode', () => {
    const sentWith = (nodes: number[], statements: number) => {
      const driven = withLanes(nodes, { statements });
      for (const id of [10, 20, 30, 11, 21, 31, 12, 22, 32]) void driven.create(id);
      return driven.underWay.map(({ lane }) => lane);
    };
    expect(sentWith([0, 0, 0], 9)).toEqual([0, 0]);
    expect(sentWith([0, 1, 2], 9)).toEqual([0, 0, 1, 1, 2, 2]);
    expect(sentWith([0, 1, 2], 5)).toEqual([0, 1, 2]);
    expect(sentWith([0, 1, 2], 2)).toEqual([0, 1]);
  });

  test('a node that hangs blocks only its own creates, which are rejected in time', async () => {
    // Lanes 0 and 1 belong to the hanging node.
    const driven = withLanes([0, 0, 1], { statements: 3 });
    const hanging = [10, 11, 20, 21].map((id) => driven.create(id));
    const outcomes = Promise.allSettled(hanging);
    for (let round = 1; round <= 5; round++) {
      const going = driven.create(10 * round + 2);
      await driven.answer(BigInt(10 * round + 2));
      expect(await going).toBe('created');
    }
    jest.advanceTimersByTime(LIMITS.timeoutMs / 2);
    await settle();
    // 10 was sent. Only the end of its statement tells whether it is stored.
    expect(driven.commits.waiting).toBe(0);
    driven.underWay[0]?.fail(new StoreUnavailable('gone'));
    expect((await outcomes).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    expect(driven.sent.flat().filter((id) => id % 10n !== 2n)).toEqual([10n]);
    expect(driven.underWay).toEqual([]);
  });

  test.each([
    ['creates', { waitingCreates: 4, statements: 1 }],
    ['characters', { waitingCharacters: 40, statements: 1 }],
  ])('the queue is bounded in %s over all lanes together', async (_, limits) => {
    const driven = withLanes([0, 1, 2], limits);
    const name = 'ten digits';
    const taken = [10, 11, 12, 21, 22].map((id) => driven.create(id, name));
    await expect(driven.create(20, name)).rejects.toThrow(StoreUnavailable);
    await driven.answer(10n);
    taken.push(driven.create(20, name));
    await answerAll(driven);
    expect(await Promise.all(taken)).toEqual(Array(6).fill('created'));
  });

  test.each([
    ['creates', { waitingCreates: 8 }],
    ['characters', { waitingCharacters: 80 }],
  ])(
    'one node of several may fill half of the queue in %s, so that a hanging one leaves room',
    async (_, limits) => {
      const driven = withLanes([0, 0, 1], limits);
      const name = 'ten digits';
      const taken = [10, 11, 20, 21, 30].map((id) => driven.create(id, name));
      await expect(driven.create(31, name)).rejects.toThrow(StoreUnavailable);
      await expect(driven.create(40, name)).rejects.toThrow(StoreUnavailable);
      taken.push(...[12, 22, 32].map((id) => driven.create(id, name)));
      await answerAll(driven);
      expect(await Promise.all(taken)).toEqual(Array(8).fill('created'));
    },
  );

  test('a refused row fails alone, and only the batch of its lane is split', async () => {
    const driven = withLanes([0, 0], { statements: 1 });
    void driven.create(10);
    const names = ['a', 'a', REFUSED_NAME, 'a'];
    const results = [11, 20, 21, 31].map((id, index) => driven.create(id, names[index]));
    const outcomes = Promise.allSettled(results);
    await answerAll(driven);
    expect(driven.sent).toEqual([[10n], [11n, 21n, 31n], [11n], [21n, 31n], [21n], [31n], [20n]]);
    const [first, second, third, fourth] = await outcomes;
    expect([first?.status, second?.status, fourth?.status]).toEqual(Array(3).fill('fulfilled'));
    expect(third).toMatchObject({ status: 'rejected', reason: expect.any(ValuesRefused) as unknown });
  });

  test('each lane distinguishes a repeat from a conflict', async () => {
    const driven = withLanes([0, 1]);
    driven.table.set(20n, plant(20));
    driven.table.set(21n, plant(21, 'of old'));
    const results = [10, 11, 20, 21, 20].map((id) => driven.create(id));
    await answerAll(driven);
    expect(await Promise.all(results)).toEqual(['created', 'created', 'repeated', 'conflict', 'repeated']);
  });

  test('waiting creates are distributed again, in order, when the lanes change', async () => {
    const driven = handDriven();
    const results = [10, 21, 11, 20].map((id) => {
      jest.advanceTimersByTime(1);
      return driven.commits.create(plant(id));
    });
    driven.commits.useShards({ nodes: [0, 1], shardOf: (id) => Number(id % 10n) });
    expect(driven.commits.waiting).toBe(3);
    await answerAll(driven);
    expect(driven.sent).toEqual([[10n], [11n, 21n], [20n]]);
    expect(await Promise.all(results)).toEqual(Array(4).fill('created'));
  });

  test('waiting creates of all lanes are merged into one in order', async () => {
    const driven = withLanes([0, 0], { statements: 1, batchRows: 1 });
    const results = [10, 21, 20, 31].map((id) => driven.create(id));
    driven.commits.useShards({ nodes: [0], shardOf: () => 0 });
    await answerAll(driven);
    expect(driven.sent).toEqual([[10n], [21n], [20n], [31n]]);
    expect(await Promise.all(results)).toEqual(Array(4).fill('created'));
  });
});

test.each([1, 3])(
  'In any interleaving of creates in %d lanes, every create is settled and agrees with the table',
  async (lanes) => {
    const creates = fc.record({
      kind: fc.constant('create' as const),
      id: fc.integer({ min: 1, max: 6 }),
      name: fc.constantFrom('a', 'b', REFUSED_NAME, 'x'.repeat(60)),
    });
    const steps = fc.oneof(
      { weight: 6, arbitrary: creates },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('answer' as const), which: fc.nat(1) }) },
      // A statement that fails may still have been executed.
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('fail' as const),
          which: fc.nat(1),
          hasEffect: fc.boolean(),
        }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.nat(1_500) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 60 }), fc.boolean(), async (script, settleBetween) => {
        const driven = handDriven({ statementsPerNode: 2, statements: 2 });
        const { commits, table, underWay, sent } = driven;
        const shardOf = (id: bigint) => Number(id) % lanes;
        commits.useShards({ nodes: [0, 0, 1].slice(0, lanes), shardOf });
        const created: { plant: StoredPlant; outcome: Promise<[PromiseSettledResult<CreateResult>]> }[] = [];
        let hasFailed = false;
        for (const step of script) {
          switch (step.kind) {
            case 'create': {
              const one = plant(step.id, step.name);
              created.push({ plant: one, outcome: Promise.allSettled([commits.create(one)]) });
              break;
            }
            case 'answer':
              underWay[step.which]?.answer();
              break;
            case 'fail': {
              const statement = underWay[step.which];
              if (statement === undefined) break;
              hasFailed = true;
              if (step.hasEffect && !statement.plants.some(({ name }) => name === REFUSED_NAME)) {
                for (const one of statement.plants) insert(table, one);
              }
              statement.fail(new StoreUnavailable('gone'));
              break;
            }
            case 'time':
              jest.advanceTimersByTime(step.ms);
          }
          if (settleBetween) await settle();
          expect(underWay.length).toBeLessThanOrEqual(2);
          expect(commits.waiting).toBeLessThanOrEqual(LIMITS.waitingCreates);
        }
        await settle();
        await answerAll(driven);

        expect(commits.waiting).toBe(0);
        expect(underWay).toEqual([]);
        for (const ids of sent) {
          expect(ids.length).toBeLessThanOrEqual(LIMITS.batchRows);
          expect(new Set(ids).size).toBe(ids.length);
          expect(new Set(ids.map(shardOf)).size).toBe(1);
        }
        const creators = new Map<bigint, number>();
        for (const { plant: one, outcome } of created) {
          const [settled] = await outcome;
          const stored = table.get(one.id);
          if (settled.status === 'rejected') {
            if (settled.reason instanceof ValuesRefused) expect(one.name).toBe(REFUSED_NAME);
            else expect(settled.reason).toBeInstanceOf(StoreUnavailable);
          } else if (settled.value === 'conflict') {
            expect(stored).toBeDefined();
            expect(stored).not.toEqual(one);
          } else {
            expect(stored).toEqual(one);
            if (settled.value === 'created') creators.set(one.id, (creators.get(one.id) ?? 0) + 1);
          }
        }
        for (const [id, stored] of table) {
          expect(stored.name).not.toBe(REFUSED_NAME);
          // One create made the row. If a statement failed, that create may have been rejected.
          const count = creators.get(id) ?? 0;
          expect(hasFailed ? count <= 1 : count === 1).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  },
);
