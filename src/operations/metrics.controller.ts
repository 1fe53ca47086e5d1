import { Controller, Get, Inject, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { DataSource } from 'typeorm';
import { Public } from '../auth/public.decorator.js';
import { poolOf } from '../database/data-source.js';
import { LogOutput } from '../logging/log-output.js';
import { Descriptors } from './descriptors.js';
import { METRICS, type Metrics } from './metrics.js';

/** Prometheus reads here. The module leaves this controller out unless METRICS=on. */
@ApiExcludeController()
@Controller('metrics')
export class MetricsController {
  constructor(
    @Inject(METRICS) private readonly metrics: Metrics,
    dataSource: DataSource,
    descriptors: Descriptors,
  ) {
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
    const { registry } = this.metrics;
    response.type(registry.contentType).send(await registry.metrics());
  }
}
