import { randomUUID } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** The PostgreSQL server to test on, by a user that may create databases; unset: the embedded one. */
export const TEST_DATABASE_URL = process.env.TEST_DATABASE_URL;

/** A database of its own for one test file. */
export interface TestDatabase {
  /** The variables that make the service use it. */
  env: Record<string, string>;
  drop: () => Promise<void>;
}

export async function createTestDatabase(): Promise<TestDatabase> {
  return TEST_DATABASE_URL === undefined ? createFolder() : createOnServer(TEST_DATABASE_URL);
}

async function createFolder(): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
  // The global setup made one that needs only be copied.
  await cp(process.env.PLANT_STORE_TEST_TEMPLATE as string, folder, { recursive: true });
  return { env: { DATA_DIR: folder }, drop: () => rm(folder, { recursive: true, force: true }) };
}

async function createOnServer(server: string): Promise<TestDatabase> {
  const name = `plant_store_test_${randomUUID().replaceAll('-', '')}`;
  await onServer(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    env: { DATABASE_URL: url.href },
    drop: async () => {
      await onServer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** Runs one statement on a connection of its own. */
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
