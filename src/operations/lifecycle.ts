import { Injectable } from '@nestjs/common';

/** Tells the other parts whether the process is stopping. */
@Injectable()
export class Lifecycle {
  isStopping = false;
}
