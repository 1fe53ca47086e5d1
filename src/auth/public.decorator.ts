import { Reflector } from '@nestjs/core';

/** Lets a route be called without a token. All other routes require one. */
export const Public = Reflector.createDecorator<undefined, boolean>({ transform: () => true });
