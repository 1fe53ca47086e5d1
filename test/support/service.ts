import { randomInt } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import type { DynamicModule } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { createApp } from '../../src/app.js';
import { loadConfig, type Config } from '../../src/config/config.js';
import { Database } from '../../src/database/database.js';
import { createLogger } from '../../src/logging/logging.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { recordResponses } from './recorded-responses.js';

export const TOKEN = 'test-token-0123456789';

/** The service as shipped, made by `createApp()`, which listens on a free port and has its own database. */
export interface TestService {
  app: NestExpressApplication;
  port: number;
  url: string;
  /** All log lines so far. */
  logs: () => string;
  /** Runs a statement on the service's database. @returns its rows. */
  sql: <Row>(statement: string, parameters?: unknown[]) => Promise<Row[]>;
  stop: () => Promise<void>;
}

interface StoredRow {
  id: string;
  name: string;
  tag: string | null;
}

/**
 * @param options.database a database that the caller drops. Without it the service gets a new one.
 * @param options.prepare is called with the application before it listens.
 * @param options.root makes a root module instead of the service's own. With `prepare` or `root` this is not the service
 *   as shipped, so its responses are not checked against the contract.
 */
export async function startService(
  options: {
    env?: Record<string, string>;
    database?: TestDatabase;
    prepare?: (app: NestExpressApplication) => void;
    root?: (config: Config, logger: Logger) => DynamicModule;
  } = {},
): Promise<TestService> {
  const database = options.database ?? (await createTestDatabase());
  // Newest first. These steps run even if the service does not start.
  const undo = options.database === undefined ? [() => database.drop()] : [];
  const stop = async () => {
    for (const step of undo.splice(0)) await step();
  };
  try {
    const config = loadConfig({
      ACCESS_TOKENS: TOKEN,
      LOG_LEVEL: 'trace',
      PORT: '0',
      // A busy machine must not reach the limit; tests of the limit set their own.
      DATABASE_TIMEOUT_MS: '60000',
      ...database.env,
      ...options.env,
    });
    const lines: string[] = [];
    const sink = new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(chunk.toString());
        done();
      },
    });
    const logger = createLogger(config.operations, sink);
    const app = await createApp(config, logger, options.root?.(config, logger));
    const isAsShipped = options.prepare === undefined && options.root === undefined;
    const handOver = isAsShipped ? recordResponses(app.getHttpServer()) : undefined;
    undo.unshift(async () => {
      app.getHttpServer().closeAllConnections();
      await app.close();
      handOver?.();
    });
    options.prepare?.(app);
    await app.listen(config.http.port, config.http.host);
    await app.get(Database).started;
    const { port } = app.getHttpServer().address() as AddressInfo;
    return {
      app,
      port,
      url: `http://127.0.0.1:${port}`,
      logs: () => lines.join(''),
      sql: <Row>(statement: string, parameters?: unknown[]) =>
        app.get(DataSource).query<Row[]>(statement, parameters),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Makes creates wait for the database. In the embedded database the transaction itself blocks, because it takes the only
 * connection.
 *
 * @returns a function that lets them go on. It may be called again.
 */
export async function holdCreates(service: TestService): Promise<() => Promise<void>> {
  const runner = service.app.get(DataSource).createQueryRunner();
  await runner.startTransaction();
  await runner.query('LOCK TABLE plants IN EXCLUSIVE MODE');
  return async () => {
    if (runner.isReleased) return;
    await runner.rollbackTransaction();
    await runner.release();
  };
}

/**
 * Makes inserts fail with an error that blames no value, like a full disk.
 *
 * @param condition of SQL, which holds for rows that can still be stored.
 */
export async function failCreatesUnless(service: TestService, condition: string): Promise<void> {
  // Citus takes one change at a time.
  await service.sql('ALTER TABLE plants DROP CONSTRAINT IF EXISTS fails');
  await service.sql(
    `ALTER TABLE plants ADD CONSTRAINT fails CHECK (${condition} OR current_setting('no.such') = '') NOT VALID`,
  );
}

/** An id that no other test uses. */
export function unusedId(): bigint {
  return BigInt(randomInt(2 ** 47)) * 1_000n + BigInt(randomInt(1_000));
}

/** @returns the row with this id, or undefined. */
export async function rowOf(service: TestService, id: bigint): Promise<StoredRow | undefined> {
  const [row] = await service.sql<StoredRow>('SELECT id, name, tag FROM plants WHERE id = $1', [
    id.toString(),
  ]);
  return row;
}

export async function countRows(service: TestService): Promise<number> {
  const [row] = await service.sql<{ count: string }>('SELECT count(*) FROM plants');
  return Number(row?.count);
}
