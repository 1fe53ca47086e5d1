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

/** The service as shipped, made by `createApp()`, listening on a free port, on a database of its own. */
export interface TestService {
  app: NestExpressApplication;
  port: number;
  url: string;
  /** Every log line so far. */
  logs: () => string;
  /** The rows of a statement on the service's own database. */
  sql: <Row>(statement: string, parameters?: unknown[]) => Promise<Row[]>;
  stop: () => Promise<void>;
}

export interface StoredRow {
  id: string;
  name: string;
  tag: string | null;
}

/**
 * @param options.database one to use that the caller drops; without it the service gets its own.
 * @param options.prepare called with the application before it listens.
 * @param options.root makes the module to run, in place of the service's own. With either of these two it is not the
 *   service as shipped any more, so its responses are not judged by the contract.
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
  // Newest first; each is undone even if the service does not start.
  const undo = options.database === undefined ? [() => database.drop()] : [];
  const stop = async () => {
    for (const step of undo.splice(0)) await step();
  };
  try {
    const config = loadConfig({
      ACCESS_TOKENS: TOKEN,
      LOG_LEVEL: 'trace',
      PORT: '0',
      // What happens at the time limit is for tests that set one: on a busy machine everything takes long.
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

/** An id that no other test uses. */
export function unusedId(): bigint {
  return BigInt(randomInt(2 ** 47)) * 1_000n + BigInt(randomInt(1_000));
}

/** The row of an id, or undefined. */
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
