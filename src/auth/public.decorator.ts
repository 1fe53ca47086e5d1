import { SetMetadata } from '@nestjs/common';

export const IS_PUBLIC = 'isPublic';

/** Lets a route be called without a token. All other routes require one. */
export const Public = () => SetMetadata(IS_PUBLIC, true);
