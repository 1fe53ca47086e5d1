import { Inject, Injectable } from '@nestjs/common';
import { Counter, Histogram } from 'prom-client';
import { METRICS, type Metrics } from '../operations/metrics.js';

/** How creates end. */
const OUTCOMES = ['created', 'repeated', 'refused', 'unavailable'] as const;

/** The metrics of creates. */
@Injectable()
export class PlantsMetrics {
  readonly #creates: Counter<'outcome'>;
  readonly #batchRows: Histogram;

  constructor(@Inject(METRICS) private readonly metrics: Metrics) {
    const registers = [metrics.registry];
    this.#creates = new Counter({
      name: 'plants_creates_total',
      help: 'Creates by outcome',
      labelNames: ['outcome'],
      registers,
    });
    for (const outcome of OUTCOMES) this.#creates.inc({ outcome }, 0);
    this.#batchRows = new Histogram({
      name: 'plants_batch_rows',
      help: 'Rows that were committed together by one statement',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
      registers,
    });
  }

  countCreate(outcome: (typeof OUTCOMES)[number]): void {
    if (this.metrics.enabled) this.#creates.inc({ outcome });
  }

  observeBatch(rows: number): void {
    if (this.metrics.enabled) this.#batchRows.observe(rows);
  }

  watchWaiting(read: () => number): void {
    this.metrics.watch('plants_waiting_creates', 'Creates that wait for a statement', read);
  }

  watchShards(shards: { count: number; writable: number }): void {
    this.metrics.watch(
      'plants_shards',
      'Shards of the table; 1 if it is not distributed',
      () => shards.count,
    );
    this.metrics.watch(
      'plants_writable_shards',
      'Shards whose latest statements did not fail',
      () => shards.writable,
    );
  }
}
