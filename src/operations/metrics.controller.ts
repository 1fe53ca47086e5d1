import { Controller, Get, Inject, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { DataSource } from 'typeorm';
import { Public } from '../auth/public.decorator.js';
import { poolOf } from '../database/data-source.js';
import { Database } from '../database/database.js';
import { LogOutput } from '../logging/log-output.js';
import { Descriptors } from './descriptors.js';
import { Lifecycle } from './lifecycle.js';
import { METRICS, type Metrics } from './metrics.js';

/** Serves the metrics to Prometheus. The module includes it only if METRICS=on. */
@ApiExcludeController()
@Controller('metrics')
export class MetricsController {
  #isReady = 0;

  constructor(
    @Inject(METRICS) private readonly metrics: Metrics,
    dataSource: DataSource,
    private readonly database: Database,
    private readonly lifecycle: Lifecycle,
    descriptors: Descriptors,
  ) {
    metrics.watch('service_ready', 'What /health/ready answers: 1 for 200, 0 for 503', () => this.#isReady);
    metrics.watchTotal(
      'log_lines_dropped_total',
      'Log lines that standard output did not take in time',
      () => LogOutput.dropped,
    );
    metrics.watchTotal(
      'process_out_of_fds_seconds_total',
      'Seconds in which no file descriptor was left',
      () => descriptors.secondsWithout,
    );
    const pool = () => poolOf(dataSource);
    metrics.watch('database_pool_connections', 'Open connections', () => pool()?.totalCount ?? 0);
    metrics.watch(
      'database_pool_idle_connections',
      'Open connections that do nothing',
      () => pool()?.idleCount ?? 0,
    );
    metrics.watch(
      'database_pool_waiting',
      'Statements that wait for a connection',
      () => pool()?.waitingCount ?? 0,
    );
  }

  @Get()
  @Public()
  async read(@Res() response: Response): Promise<void> {
    // Before the other metrics are read, so that this check does not count as a waiting statement.
    this.#isReady = Number(!this.lifecycle.isStopping && (await this.database.isReady()));
    const { registry } = this.metrics;
    response.type(registry.contentType).send(await registry.metrics());
  }
}
