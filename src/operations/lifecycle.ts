import { Injectable } from '@nestjs/common';

/** What the parts of the process need to know of its end. */
@Injectable()
export class Lifecycle {
  isStopping = false;
}
