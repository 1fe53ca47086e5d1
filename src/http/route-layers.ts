import type { Express, NextFunction, Request, Response } from 'express';

/** What Express's router keeps for each middleware and route. Its types do not declare it. */
export interface Layer {
  /** Whether it is a middleware for every path. */
  slash: boolean;
  route?: { path: unknown; methods: Record<string, boolean>; _handlesMethod(method: string): boolean };
  match(path: string): unknown;
  handleRequest(request: Request, response: Response, next: NextFunction): void;
  handleError(error: unknown, request: Request, response: Response, next: NextFunction): void;
}

/** Every layer of the application's router, in order. */
export function layersOf(app: Express): Layer[] {
  return app.router.stack as unknown as Layer[];
}
