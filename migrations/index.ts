import { CreatePlants1764201600000 } from './1764201600000-create-plants.js';

/** Every migration of this folder, oldest first. A test checks that none is missing. */
export const MIGRATIONS = [CreatePlants1764201600000];
