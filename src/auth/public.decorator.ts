import { SetMetadata } from '@nestjs/common';

export const IS_PUBLIC = 'isPublic';

/** Lets a route be called without a token. Every route without this needs one. */
export const Public = () => SetMetadata(IS_PUBLIC, true);
