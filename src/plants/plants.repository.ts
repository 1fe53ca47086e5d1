import { hash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, Repository } from 'typeorm';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import { StoreUnavailable } from '../database/errors.js';
import { LOG_MESSAGE, type Statement } from '../database/statements.js';
import { FIXED_LIMITS, GroupCommit, type CreateResult, type WrittenRow } from './group-commit.js';
import { COLUMNS, fromRow, parametersOf, SELECTION, type StoredPlant } from './plant.columns.js';
import { PlantEntity } from './plant.entity.js';
import { PlantsMetrics } from './plants.metrics.js';

/**
 * Statements of up to this many rows are prepared: without that, 14 % fewer plants are stored at 8 connections. Parsing a
 * larger one costs little compared with its inserts.
 */
const PREPARED_ROWS = 8;
/** How often a row is tried if its id was taken at the INSERT and free at the SELECT, because a plant was deleted. */
const MAX_ROUNDS = 3;

type Insert = Omit<Statement, 'values'>;

/** The statements that insert 1, 2, ... rows. */
const INSERTS = Array.from({ length: FIXED_LIMITS.batchRows }, (_, index) => insertOf(index + 1));

function insertOf(rows: number): Insert {
  const values = Array.from({ length: rows }, (_, row) => {
    const parameters = COLUMNS.map((_, column) => `$${COLUMNS.length * row + column + 1}`);
    return `(${parameters.join(',')})`;
  });
  const text = `INSERT INTO plants (${COLUMNS.join(', ')}) VALUES ${values.join(',')} ON CONFLICT (id) DO NOTHING RETURNING id`;
  if (rows > PREPARED_ROWS) return { text };
  // Behind a pooler, another version of the service may have prepared its own statements in this session.
  return { text, name: `plants_${hash('sha256', text).slice(0, 16)}` };
}

/** Succeeds if the database would accept creates, but stores nothing: it selects no row. */
const STORES_NOTHING = `INSERT INTO plants (${COLUMNS.join(', ')}) SELECT ${COLUMNS.join(', ')} FROM plants WHERE false ON CONFLICT (id) DO NOTHING RETURNING id`;

/** The table of plants. Creates go through a group commit. Statements find rows by id alone. */
@Injectable()
export class PlantsRepository extends Repository<PlantEntity> {
  readonly #commits: GroupCommit;

  constructor(
    dataSource: DataSource,
    private readonly database: Database,
    @Inject(CONFIG) config: Config,
    private readonly metrics: PlantsMetrics,
  ) {
    super(PlantEntity, dataSource.createEntityManager());
    this.#commits = new GroupCommit((...batch) => this.#write(...batch), {
      ...FIXED_LIMITS,
      // From three connections on, one is left for the probe.
      statements: Math.max(FIXED_LIMITS.statementsPerNode, config.database.poolSize - 1),
      timeoutMs: config.database.timeoutMs,
    });
    database.need(STORES_NOTHING);
    database.shards.onChange((map) => this.#commits.useShards(map));
    metrics.watchWaiting(() => this.#commits.waiting);
    metrics.watchShards(database.shards);
  }

  /** See {@link GroupCommit.create}. */
  createOnce(plant: StoredPlant): Promise<CreateResult> {
    return this.#commits.create(plant);
  }

  async #write(plants: StoredPlant[], deadline: number, shard: number): Promise<WrittenRow[]> {
    const written = new Map<bigint, WrittenRow>();
    let missing = plants;
    for (let round = 1; missing.length > 0; round++) {
      if (round > MAX_ROUNDS) throw new StoreUnavailable('Plants were deleted while they were being created');
      for (const stored of await this.#insert(missing, deadline, shard))
        written.set(stored.id, { isNew: true, stored });
      const taken = missing.filter(({ id }) => !written.has(id));
      for (const stored of await this.#find(taken, deadline, shard))
        written.set(stored.id, { isNew: false, stored });
      missing = taken.filter(({ id }) => !written.has(id));
    }
    this.metrics.observeBatch(plants.length);
    return plants.map(({ id }) => written.get(id) as WrittenRow);
  }

  /** @returns the plants that were stored; the others' ids were taken. */
  async #insert(plants: StoredPlant[], deadline: number, shard: number): Promise<StoredPlant[]> {
    const rows = await this.database.write<{ id: string }>(
      {
        ...(INSERTS[plants.length - 1] as Insert),
        values: parametersOf(plants),
      },
      deadline,
      shard,
    );
    if (rows.length === plants.length) return plants;
    const inserted = new Set(rows.map(({ id }) => BigInt(id)));
    return plants.filter(({ id }) => inserted.has(id));
  }

  /**
   * Reads the plants that have these ids, and waits until they are durable (see {@link LOG_MESSAGE}): a row whose commit
   * gave up waiting for a standby is visible, but a failover loses it.
   */
  async #find(plants: StoredPlant[], deadline: number, shard: number): Promise<StoredPlant[]> {
    if (plants.length === 0) return [];
    const found = await this.database.write<Parameters<typeof fromRow>[0]>(
      {
        text: `SELECT ${SELECTION}, ${LOG_MESSAGE} FROM plants WHERE id IN (${plants.map((_, row) => `$${row + 1}`).join(',')})`,
        values: plants.map(({ id }) => id.toString()),
      },
      deadline,
      shard,
    );
    return found.map(fromRow);
  }
}
