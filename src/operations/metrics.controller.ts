import { Controller, Get, Inject, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { Public } from '../auth/public.decorator.js';
import { METRICS, type Metrics } from './metrics.js';

/** Prometheus reads here. The module leaves this controller out unless METRICS=on. */
@ApiExcludeController()
@Controller('metrics')
export class MetricsController {
  constructor(@Inject(METRICS) private readonly metrics: Metrics) {}

  @Get()
  @Public()
  async read(@Res() response: Response): Promise<void> {
    const { registry } = this.metrics;
    response.type(registry.contentType).send(await registry.metrics());
  }
}
