import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { LOGGER } from '../logging/logging.js';
import { checkEncoding, placeOf } from './catalogue.js';
import { maySucceedLater, StoreUnavailable } from './errors.js';
import { migrate } from './migrate.js';
import { HAS_SHARDS, SELECT_SHARDS, type ShardRow } from './shard-map.js';
import { Shards } from './shards.js';
import { LOG_MESSAGE, Statements, type Statement } from './statements.js';

const START_RETRY_MS = 500;
/** The first failed attempt is logged, then every 60th: two a minute if each fails at once. */
const ATTEMPTS_PER_LOG_LINE = 60;
const READY_TIMEOUT_MS = 1_000;
/** How often the shards are read: they move when the cluster is rebalanced. */
const SHARDS_MS = 60_000;

/** Stores nothing, but its commit waits as a create's does. */
const COMMIT = `SELECT ${LOG_MESSAGE}`;

/** The connection to the database: its start, its readiness and its end. */
@Injectable()
export class Database implements OnApplicationBootstrap, OnApplicationShutdown {
  /**
   * Resolves to true once the database can be used, to false if the service stops before that. Rejects if the database
   * cannot be used until somebody changes its configuration.
   */
  readonly started: Promise<boolean>;
  readonly shards: Shards;
  #resolveStarted!: (outcome: Promise<boolean>) => void;
  readonly #statements: Statements;
  #usable = false;
  #stopping = false;
  /** Statements that change nothing and succeed if the operations' would. */
  readonly #needs: Statement[] = [];
  #look: Promise<boolean> | undefined;
  #wasReady = true;
  #shardsTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly dataSource: DataSource,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#statements = new Statements(dataSource, logger);
    this.started = new Promise((resolve) => (this.#resolveStarted = resolve));
    this.shards = new Shards((id) => this.#lookAtShard(id), logger);
  }

  /** Nothing waits for the start: the service listens meanwhile and reports that it is not ready. */
  onApplicationBootstrap(): void {
    const start = this.#start();
    start.catch(() => undefined);
    this.#resolveStarted(start);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopping = true;
    // If another part of the application failed to start, this one never started.
    this.#resolveStarted(Promise.resolve(false));
    await this.started.catch(() => undefined);
    this.#usable = false;
    clearTimeout(this.#shardsTimer);
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
  }

  /**
   * Makes the readiness depend on a statement.
   *
   * @param text a statement that changes nothing and succeeds if those of an operation would.
   */
  need(text: string): void {
    this.#needs.push({ text, values: [] });
  }

  /**
   * Whether the statements of the operations would succeed now, on at least one shard. The table may be missing or
   * locked, a column or a right may be missing, or the server may take no writes. Some faults, such as a
   * full disk, show only when a create fails. So after that the service needs a pause and a commit to be ready again.
   */
  async isReady(): Promise<boolean> {
    if (!this.#usable || this.shards.haveJustFailed) return false;
    // Concurrent probes share one connection of the pool.
    this.#look ??= this.#tryNeeds().finally(() => (this.#look = undefined));
    return this.#look;
  }

  async #tryNeeds(): Promise<boolean> {
    const commit = this.shards.writable === this.shards.count ? [] : [{ text: COMMIT, values: [] }];
    const deadline = performance.now() + READY_TIMEOUT_MS;
    try {
      for (const statement of [...this.#needs, ...commit]) await this.#statements.run(statement, deadline);
      if (!(await this.shards.isWritable())) throw new StoreUnavailable('No shard can be written');
      if (!this.#wasReady) this.logger.info('Ready again');
      this.#wasReady = true;
    } catch (error) {
      if (this.#wasReady) this.logger.warn({ err: causeOf(error) }, 'Not ready: creates would fail');
      this.#wasReady = false;
    }
    return this.#wasReady;
  }

  #lookAtShard(id: bigint): Promise<unknown> {
    const look = { text: 'SELECT 1 FROM plants WHERE id = $1', values: [id.toString()] };
    return this.#statements.run(look, performance.now() + READY_TIMEOUT_MS);
  }

  /** Runs a statement that reads. See {@link Statements.run}; a failure is logged here. */
  async query<Row>(statement: Statement, deadline: number): Promise<Row[]> {
    try {
      if (!this.#usable) throw new StoreUnavailable('The service is not connected to its store');
      return await this.#statements.run<Row>(statement, deadline);
    } catch (error) {
      if (error instanceof StoreUnavailable) this.logger.error({ err: causeOf(error) }, 'A statement failed');
      throw error;
    }
  }

  /**
   * Runs a statement whose commit waits for the disk, as {@link query} does. Its outcome affects the readiness: a read
   * succeeds on a full disk too.
   *
   * @param shard the shard of its rows, as {@link Shards} numbers them.
   */
  async write<Row>(statement: Statement, deadline: number, shard: number): Promise<Row[]> {
    try {
      const rows = await this.query<Row>(statement, deadline);
      this.shards.succeeded(shard);
      return rows;
    } catch (error) {
      if (error instanceof StoreUnavailable) this.shards.failed(shard);
      throw error;
    }
  }

  /** Reads where rows are stored, now and every minute. If that fails, the old map stays: it may only cost speed. */
  async #readShards(): Promise<void> {
    const deadline = performance.now() + this.config.database.timeoutMs;
    try {
      const [catalogue] = await this.#statements.run<{ hasShards: boolean }>(HAS_SHARDS, deadline);
      const hasShards = catalogue?.hasShards === true;
      this.shards.use(hasShards ? await this.#statements.run<ShardRow>(SELECT_SHARDS, deadline) : []);
    } catch (error) {
      this.logger.warn({ err: causeOf(error) }, 'The shards of the table could not be read');
    }
    if (this.#stopping) return;
    this.#shardsTimer = setTimeout(() => void this.#readShards(), SHARDS_MS).unref();
  }

  async #start(): Promise<boolean> {
    for (let attempt = 1; !this.#stopping; attempt++) {
      try {
        if (!this.dataSource.isInitialized) await this.dataSource.initialize();
        await checkEncoding(this.dataSource);
        const executed = this.config.database.migrations === 'auto' ? await migrate(this.dataSource) : [];
        if (executed.length > 0) this.logger.info({ migrations: executed }, 'Migrated the database');
        this.logger.info(await placeOf(this.dataSource, this.dataSource), 'The database can be used');
        this.#usable = true;
        await this.#readShards();
        return true;
      } catch (error) {
        if (!maySucceedLater(error)) throw error;
        if (attempt % ATTEMPTS_PER_LOG_LINE === 1)
          this.logger.warn({ err: error, attempt }, 'The database cannot be reached yet; waiting for it');
        await delay(START_RETRY_MS);
      }
    }
    return false;
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof StoreUnavailable ? (error.cause ?? error) : error;
}
