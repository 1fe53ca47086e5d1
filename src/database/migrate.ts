import { MigrationExecutor, type DataSource, type QueryRunner } from 'typeorm';
import { placeOf } from './catalogue.js';

type Row = Record<string, unknown>;

/** The key of the migrations' lock: any number that nothing else in the database uses. */
const LOCK_KEY = '7309868274398';

/**
 * Runs the pending migrations.
 *
 * @returns the names of the migrations that ran.
 */
export function migrate(dataSource: DataSource): Promise<string[]> {
  return alone(dataSource, async (executor, runner) => {
    const node = await citusNodeOf(runner);
    if (node === 'worker') await expectNothingPending(executor, runner);
    const executed = await executor.executePendingMigrations();
    if (node === 'coordinator') await runner.query(SHARE_MIGRATIONS);
    return executed.map(({ name }) => name);
  });
}

/**
 * Reverts the latest migration. Data in what it drops is lost.
 *
 * @returns its name, or undefined if none has run.
 */
export function revert(dataSource: DataSource): Promise<string | undefined> {
  return alone(dataSource, async (executor) => {
    const before = await executor.getExecutedMigrations();
    await executor.undoLastMigration();
    const after = new Set((await executor.getExecutedMigrations()).map(({ name }) => name));
    return before.find(({ name }) => !after.has(name))?.name;
  });
}

/**
 * Does all work in one transaction, one replica at a time. The lock belongs to the transaction and not to the session,
 * so it holds behind a pooler in transaction mode.
 */
async function alone<T>(
  dataSource: DataSource,
  work: (executor: MigrationExecutor, runner: QueryRunner) => Promise<T>,
): Promise<T> {
  const runner = dataSource.createQueryRunner();
  try {
    await runner.startTransaction();
    await runner.query(`SELECT pg_advisory_xact_lock(${LOCK_KEY})`);
    await stayInSchema(dataSource, runner);
    const executor = new MigrationExecutor(dataSource, runner);
    executor.transaction = 'all';
    const result = await work(executor, runner);
    await runner.commitTransaction();
    return result;
  } catch (error) {
    // The first error is the cause. A lost connection needs no rollback.
    await runner.rollbackTransaction().catch(() => undefined);
    throw error;
  } finally {
    await runner.release();
  }
}

/**
 * Has Citus copy the list of migrations to every node, so that replicas at workers see what has run. Does so only if
 * the table of plants is distributed, the list is not shared yet, and this user may share it.
 */
const SHARE_MIGRATIONS = `
  SELECT create_reference_table(list.oid::regclass) FROM pg_class list
  WHERE list.oid = to_regclass('migrations') AND pg_has_role(list.relowner, 'USAGE')
    AND EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('plants'))
    AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = list.oid)`;

/** @returns the server's role in a Citus cluster, or undefined if it is in none. */
async function citusNodeOf(runner: QueryRunner): Promise<'coordinator' | 'worker' | undefined> {
  const [catalogue] = (await runner.query("SELECT to_regclass('pg_dist_local_group') AS table")) as Row[];
  if (catalogue?.table == null) return undefined;
  const [local] = (await runner.query('SELECT groupid AS "group" FROM pg_dist_local_group')) as Row[];
  return local?.group === 0 ? 'coordinator' : 'worker';
}

/** @throws if a migration has not run. The schema of a cluster can only change at its coordinator. */
async function expectNothingPending(executor: MigrationExecutor, runner: QueryRunner): Promise<void> {
  const [list] = (await runner.query("SELECT to_regclass('migrations') AS table")) as Row[];
  if (list?.table == null) {
    throw new Error('A worker of Citus does not know which migrations have run. Migrate at the coordinator');
  }
  const pending = (await executor.getPendingMigrations()).map(({ name }) => name);
  if (pending.length > 0)
    throw new Error(`Migrations have not run: ${pending.join(', ')}. Migrate at the coordinator`);
}

/**
 * Makes the migrations use the schema of the table, if there is one. Otherwise a newer schema that comes first in the
 * search_path, such as one of the user's name, would get an empty table that hides the old one.
 */
async function stayInSchema(dataSource: DataSource, runner: QueryRunner): Promise<void> {
  const { schema } = await placeOf(dataSource, runner);
  if (schema === null) return;
  await runner.query(
    "SELECT set_config('search_path', concat_ws(', ', quote_ident($1), nullif(current_setting('search_path'), '')), true)",
    [schema],
  );
  dataSource.driver.schema = schema;
}
