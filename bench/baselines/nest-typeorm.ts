// NestJS as its documentation shows it: Express, a guard that reads the token from the header, ValidationPipe, and
// TypeORM's repository.save() through custom providers (docs.nestjs.com/recipes/sql-typeorm).
import {
  Body,
  Controller,
  HttpCode,
  Inject,
  Injectable,
  Module,
  Post,
  UnauthorizedException,
  UseGuards,
  ValidationPipe,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IsInt, IsOptional, IsString } from 'class-validator';
import type { Request } from 'express';
import { Column, DataSource, Entity, PrimaryColumn, Repository } from 'typeorm';

@Entity('plants')
class Plant {
  @PrimaryColumn('bigint')
  id!: number;

  @Column('text')
  name!: string;

  @Column('text', { nullable: true })
  tag?: string;
}

class CreatePlantDto {
  @IsInt()
  id!: number;

  @IsString()
  name!: string;

  @IsOptional()
  @IsString()
  tag?: string;
}

@Injectable()
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    const [type, token] = request.headers.authorization?.split(' ') ?? [];
    if (type !== 'Bearer' || token !== process.env.ACCESS_TOKEN) throw new UnauthorizedException();
    return true;
  }
}

@Injectable()
class PlantsService {
  constructor(@Inject('PLANT_REPOSITORY') private readonly plants: Repository<Plant>) {}

  create(plant: CreatePlantDto): Promise<Plant> {
    return this.plants.save(plant);
  }
}

@Controller('plants')
class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  @HttpCode(200)
  @UseGuards(AuthGuard)
  async create(@Body() plant: CreatePlantDto): Promise<Omit<Plant, 'id'>> {
    const { name, tag } = await this.plants.create(plant);
    return tag === undefined ? { name } : { name, tag };
  }
}

@Module({
  controllers: [PlantsController],
  providers: [
    PlantsService,
    {
      provide: 'DATA_SOURCE',
      useFactory: () =>
        new DataSource({
          type: 'postgres',
          ...(process.env.DATABASE_URL !== undefined && { url: process.env.DATABASE_URL }),
          entities: [Plant],
        }).initialize(),
    },
    {
      provide: 'PLANT_REPOSITORY',
      useFactory: (dataSource: DataSource) => dataSource.getRepository(Plant),
      inject: ['DATA_SOURCE'],
    },
  ],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
app.useGlobalPipes(new ValidationPipe());
await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
