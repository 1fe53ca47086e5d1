import type { NextFunction, Request, Response } from 'express';

/** For every response; the pages of Swagger UI replace the policy by their own. */
export function apiHeaders(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
  next();
}
