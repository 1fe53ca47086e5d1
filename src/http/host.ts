import { BadRequestException } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';

/** RFC 9112 section 3.2: a request of HTTP/1.1 must carry Host, exactly once. */
export function requireHost(request: Request, _response: Response, next: NextFunction): void {
  if (request.headers.host === undefined && request.httpVersion === '1.1') {
    next(new BadRequestException('Host is missing'));
    return;
  }
  next();
}
