import { HttpStatus } from '@nestjs/common';
import type { Express, NextFunction, Request, Response } from 'express';
import { abandonBody } from '../connection/abandoned-body.js';
import { sendError } from '../errors/send-error.js';

/**
 * RFC 9110 sections 9.3.7 and 15.5.6 for every path that has a route: OPTIONS is answered with the methods of the path
 * in `Allow`, any other method that the path does not have with 405 and the same.
 */
export function allowedMethods(app: Express) {
  let methods: Map<string, Set<string>> | undefined;

  return (request: Request, response: Response, next: NextFunction): void => {
    methods ??= methodsOfRoutes(app);
    const allowed = methods.get(request.path);
    if (allowed === undefined || allowed.has(request.method)) {
      next();
      return;
    }
    response.setHeader('Allow', [...allowed, 'OPTIONS'].join(', '));
    if (request.method === 'OPTIONS') {
      response.writeHead(HttpStatus.NO_CONTENT).end();
      return;
    }
    response.locals.error = HttpStatus.METHOD_NOT_ALLOWED;
    abandonBody(request);
    sendError(
      response,
      HttpStatus.METHOD_NOT_ALLOWED,
      405,
      `The methods of this path are ${[...allowed].join(', ')}`,
    );
  };
}

/** The routes are all literal paths, and matched as they are written (`case sensitive` and `strict routing`). */
function methodsOfRoutes(app: Express): Map<string, Set<string>> {
  const methods = new Map<string, Set<string>>();
  for (const { route } of app.router.stack) {
    if (route === undefined) continue;
    const own = methods.get(route.path) ?? new Set();
    for (const { method } of route.stack) {
      own.add(method.toUpperCase());
      if (method === 'get') own.add('HEAD');
    }
    methods.set(route.path, own);
  }
  return methods;
}
