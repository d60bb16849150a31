-- name: InsertOrder :exec
INSERT INTO orders (id, customer_id, email, total, currency, placed_at)
VALUES (@id, @customer_id, @email, @total, @currency, @placed_at);

-- name: InsertOrderLine :exec
INSERT INTO order_lines (order_id, sku, quantity, price) VALUES (@order_id, @sku, @quantity, @price);

-- name: ReserveStock :execrows
UPDATE stock SET available = available - @quantity WHERE sku = @sku AND available >= @quantity;

-- name: AddStock :exec
INSERT INTO stock (sku, available) VALUES (@sku, @quantity)
ON CONFLICT (sku) DO UPDATE SET available = stock.available + excluded.available;

-- name: GetStock :one
SELECT available FROM stock WHERE sku = @sku;
