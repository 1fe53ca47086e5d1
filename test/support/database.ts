import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { loadConfig } from '../../src/config/config.js';
import { createDataSource } from '../../src/database/data-source.js';
import { migrate } from '../../src/database/migrate.js';
import { createLogger } from '../../src/logging/logging.js';

/** The URL of a PostgreSQL server, with a user that may create databases. If it is unset, tests use the embedded one. */
export const TEST_DATABASE_URL = process.env.TEST_DATABASE_URL;

/** A database of its own for one test file. */
export interface TestDatabase {
  /** The variables that make the service use it. */
  env: Record<string, string>;
  drop: () => Promise<void>;
}

/**
 * The URL of a database on the coordinator of a Citus cluster, with a user that may create databases on every node. The
 * database needs the extension citus and the workers. If this is set, every test database is distributed in that cluster.
 */
export const TEST_CITUS_URL = process.env.TEST_CITUS_URL;

export async function createTestDatabase(): Promise<TestDatabase> {
  return TEST_CITUS_URL === undefined ? createEmptyDatabase() : createOnCitus(TEST_CITUS_URL);
}

/** Creates a database that is not migrated and not distributed. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  const server = TEST_DATABASE_URL ?? TEST_CITUS_URL;
  return server === undefined ? createFolder() : createOnServer(server);
}

async function createFolder(): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
  // global-setup.js made the template.
  // A quarter of the time of cp() for these hundreds of files.
  cpSync(process.env.PLANT_STORE_TEST_TEMPLATE as string, folder, { recursive: true });
  return { env: { DATA_DIR: folder }, drop: () => rm(folder, { recursive: true, force: true }) };
}

async function createOnServer(server: string): Promise<TestDatabase> {
  const name = newName();
  await onServer(server, `CREATE DATABASE ${name}`);
  return {
    env: { DATABASE_URL: databaseOf(server, name) },
    drop: async () => {
      await onServer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

const SHARDS = 4;

/** Creates a database on every node, migrates it, and distributes the table of plants to the workers. */
async function createOnCitus(coordinator: string): Promise<TestDatabase> {
  const name = newName();
  const nodes = await onServer(
    coordinator,
    'SELECT nodename, nodeport FROM pg_dist_node WHERE isactive ORDER BY groupid',
  );
  const urls = nodes.map((node) => {
    const url = new URL(coordinator);
    url.host = `${String(node.nodename)}:${String(node.nodeport)}`;
    return url;
  });
  const [first, ...workers] = urls.map((server) => databaseOf(server.href, name)) as [string, ...string[]];
  for (const [index, url] of [first, ...workers].entries()) {
    await onServer((urls[index] as URL).href, `CREATE DATABASE ${name}`);
    await onServer(url, 'CREATE EXTENSION citus');
  }
  const { hostname, port } = new URL(first);
  await onServer(first, 'SELECT citus_set_coordinator_host($1, $2)', [hostname, port]);
  for (const worker of workers) {
    const { hostname, port } = new URL(worker);
    await onServer(first, 'SELECT citus_add_node($1, $2)', [hostname, port]);
  }
  const env = { DATABASE_URL: first, ACCESS_TOKENS: 'test-token-0123456789' };
  const config = loadConfig(env);
  const dataSource = createDataSource(config.database, createLogger(config.operations));
  await dataSource.initialize();
  try {
    await migrate(dataSource);
    await onServer(first, `SELECT create_distributed_table('plants', 'id', shard_count := ${SHARDS})`);
    await migrate(dataSource);
  } finally {
    await dataSource.destroy();
  }
  return {
    env: { DATABASE_URL: first },
    drop: async () => {
      for (const server of urls) await onServer(server.href, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

const newName = () =>
  `plant_store_test_${process.env.PLANT_STORE_TEST_RUN}_${randomUUID().replaceAll('-', '')}`;

/** @returns the URL of another database on the same server. */
function databaseOf(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs one statement on a new connection. */
export async function onServer(
  url: string,
  sql: string,
  parameters: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql, parameters)).rows;
  } finally {
    await client.end();
  }
}
