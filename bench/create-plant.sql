\set number :number + 1
\set id :first_id * 10000000000 + :client_id * 100000000 + :number
INSERT INTO plants (id, name, tag) VALUES (:id, 'Monstera deliciosa', 'indoor')
