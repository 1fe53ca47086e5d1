import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { jest } from '@jest/globals';
import createExpress, { type Express, type NextFunction, type Request, type Response } from 'express';
import { routeLiteralPaths } from './literal-routes.js';

let server: Server;
afterEach(() => {
  server.close();
  server.closeAllConnections();
});

/** An application that answers with the names of the layers that the request went through. */
function application(): Express {
  const app = createExpress().enable('case sensitive routing').enable('strict routing');
  const pass = (name: string) => (_request: Request, response: Response, next: NextFunction) => {
    response.locals.layers = [...((response.locals.layers as string[] | undefined) ?? []), name];
    next();
  };
  const answer = (name: string) => (request: Request, response: Response) => {
    response.json({
      layers: [...(response.locals.layers as string[]), name],
      at: [request.baseUrl, request.originalUrl, request.path, request.params],
      route: (request.route as { path: string } | undefined)?.path,
    });
  };
  app.use(pass('first'));
  app.get('/a', pass('a'), answer('A'));
  app.use('/below', pass('below'));
  app.post('/a', answer('posted'));
  app.get('/b', pass('b1'));
  app.use(pass('late'));
  app.all('/b', pass('all'));
  app.get('/c', (_request, _response, next: NextFunction) => next('route'), answer('left out'));
  app.get('/c', answer('c'));
  app.get('/b', answer('b2'));
  app.get('/below', answer('below'));
  app.get('/fails', () => {
    throw new Error('thrown');
  });
  app.get('/rejects', () => Promise.reject(new Error('rejected')));
  app.get('/hands-on', (_request, _response, next: NextFunction) => {
    next(new Error('handed on'));
  });
  app.get('/some/:any', answer('any'));
  app.get('/some/one', answer('one'));
  app.use((_request: Request, response: Response) => response.status(404).json('nothing'));
  app.use((error: Error, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) next(error);
    else response.status(500).json(error.message);
  });
  return app;
}

async function answerOf(method: string, path: string): Promise<unknown> {
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
  return [response.status, await response.text()];
}

async function listen(listener: Parameters<typeof createServer>[1]): Promise<void> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
}

const REQUESTS: [method: string, path: string, isShort: boolean][] = [
  ['GET', '/a', true],
  ['POST', '/a', true],
  ['GET', '/b', true],
  ['GET', '/c', true],
  ['GET', '/fails', true],
  ['GET', '/rejects', true],
  ['GET', '/hands-on', true],
  // A middleware at /below sees the rest of the path, and a route with a parameter precedes /some/one.
  ['GET', '/below', false],
  ['GET', '/some/one', false],
  ['GET', '/a?b', false],
  ['GET', '/A', false],
  ['GET', '/a/', false],
  ['GET', '/%61', false],
  ['HEAD', '/a', false],
  ['OPTIONS', '/a', false],
  ['DELETE', '/a', false],
  ['GET', '/x', false],
  ['GET', '/x/y', false],
];

test.each(REQUESTS)('Answers %s %s as Express itself does', async (method, path, isShort) => {
  const app = application();
  await listen(app);
  const expected = await answerOf(method, path);
  server.close();

  const walks = jest.spyOn(app.router as unknown as { handle: () => void }, 'handle');
  await listen(routeLiteralPaths(app));
  expect(await answerOf(method, path)).toEqual(expected);
  expect(walks).toHaveBeenCalledTimes(isShort ? 0 : 1);
});
