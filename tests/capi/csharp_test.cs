// The C# binding as a program uses it: golden files, there and back, errors, tasks, and what was closed.
// Arguments: the folder of golden files, a folder to write into.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Cdd;

internal static class Program
{
    private static int failures;

    private static void Expect(bool holds, string what)
    {
        if (holds) return;
        ++failures;
        Console.Error.WriteLine("does not hold: " + what);
    }

    private static TError Throws<TError>(Action work, string what) where TError : Exception
    {
        try { work(); }
        catch (TError error) { return error; }
        catch (Exception error) { Expect(false, what + " throws " + error); return null; }
        Expect(false, what + " throws nothing");
        return null;
    }

    private static float[] Book(int rows)
    {
        var book = new float[rows * 150];
        for (int i = 0; i < book.Length; ++i) book[i] = i % 97;
        return book;
    }

    private static void GoldenFiles(string folder)
    {
        using (Reader tiny = Reader.Open(Path.Combine(folder, "tiny.cdd")))
        {
            Expect(tiny.Rows == 4 && tiny.Layout.Shape.Count == 0 && tiny.Chunks == 2, "tiny: rows, shape, chunks");
            Expect(tiny.Read<ushort>(0, 4).SequenceEqual(new ushort[] { 1, 2, 3, 4 }), "tiny: its rows");
            Expect(System.Text.Encoding.ASCII.GetString(tiny.UserMeta()) == "tick 0.1", "tiny: user metadata");
            Expect(tiny.Id.Length == 32, "tiny: id");
        }
        using (Reader died = Reader.Open(Path.Combine(folder, "unclosed.cdd"), Checks.Full))
        {
            Expect(died.Layout.Shape.SequenceEqual(new[] { 50, 3 }), "unclosed: shape");
            Expect(died.Read<float>(0, 6).SequenceEqual(Book(6)), "unclosed: its rows");
        }
        using (Reader empty = Reader.Open(Path.Combine(folder, "empty.cdd")))
        {
            Expect(empty.Rows == 0 && (empty.Layout.Dtype & 0xff) == 16 && empty.Layout.ItemBytes == 8, "empty: times");
            Expect(empty.Read<long>(0, 0).Length == 0, "empty: no rows, read as long");
            Throws<ArgumentException>(() => empty.Read<int>(0, 0), "items of another size");
        }
    }

    private static void ThereAndBack(string path, float[] book)
    {
        var layout = new Layout(typeof(float), 50, 3);
        var options = new WriterOptions { Layout = layout, UserMeta = new byte[] { 1, 2, 3 }, ChunkRows = 64 };
        using (Writer writer = Writer.Create(path, options))
        {
            writer.Append(layout, book);
            Expect(writer.Rows == 1000, "rows of the writer");
            writer.Flush();
            Throws<ArgumentException>(() => writer.Append(layout, new float[149]), "no whole rows");
            Throws<ArgumentException>(() => writer.Append(layout, new double[150]), "items of another type");
            CddException other = Throws<CddException>(
                () => writer.Append(new Layout(typeof(float), 7), new float[7]), "rows of another shape");
            Expect(other.Status == Status.InvalidArgument && other.Message.Contains("50"), "which says what fits");
            Throws<CddException>(() => Writer.Open(path, Mode.Append), "a second writer");
        }
        using (Reader reader = Reader.Open(path))
        {
            Expect(reader.Read<float>(0, 1000).SequenceEqual(book), "all rows");
            var window = new float[64 * 150];
            reader.Read(500, 64, window);
            Expect(window.SequenceEqual(book.Skip(500 * 150).Take(64 * 150)), "a window");
            float[] part = reader.Read<float>(10, 2, new Cells(5, 7, 0, 2));
            Expect(part.SequenceEqual(new[] { 10, 11 }.SelectMany(r => new[] { 5, 6 }.SelectMany(
                       l => new[] { book[r * 150 + l * 3], book[r * 150 + l * 3 + 1] }))), "cells");
            var windows = new float[3 * 2 * 150];
            reader.ReadWindows(new long[] { 700, 3, 701 }, 2, windows);
            Expect(windows.Skip(300).Take(300).SequenceEqual(book.Skip(450).Take(300)), "windows");
            Expect(reader.UserMeta().SequenceEqual(new byte[] { 1, 2, 3 }), "user metadata");
            CddException beyond = Throws<CddException>(() => reader.Read<float>(999, 2), "rows beyond the end");
            Expect(beyond.Status == Status.OutOfRange, "which is OutOfRange");
            Throws<ArgumentException>(() => reader.Read(0, 2, new float[299]), "an array that is too small");
            Throws<ArgumentException>(() => reader.Read(0, 2, new int[300]), "an array of another type");
            Throws<ArgumentOutOfRangeException>(() => reader.Read<float>(0, -1), "less than no rows");
        }
        CddException none = Throws<CddException>(() => Reader.Open(path + ".none"), "no file");
        Expect(none.Status == Status.Io && none.OsErrno == 2 && none.Message.Contains(".none"), "which names it");
        Throws<CddException>(() => Writer.Open(path, Mode.Create), "Create where a file is");
        Throws<ArgumentNullException>(() => Reader.Open(null), "no path");
    }

    private static void Damage(string path)
    {
        byte[] content = File.ReadAllBytes(path);
        int at = content.Length - 100;
        content[at] ^= 1;
        File.WriteAllBytes(path + ".bad", content);
        using (Reader reader = Reader.Open(path + ".bad"))
        {
            CddException bad = Throws<CddException>(() => reader.Read<float>(0, 1000), "a damaged chunk");
            Expect(bad.Status == Status.Checksum && bad.Kind == Place.Chunk, "which is a checksum of a chunk");
            Expect(bad.Chunk == (ulong)reader.Chunks - 1 && bad.Offset < (ulong)at, "and says which and where");
            Expect(bad.Field == null, "and no field");
        }
    }

    private static void Tasks(string path, float[] book)
    {
        using (Reader reader = Reader.Open(path))
        {
            var random = new Random(1);
            var reads = new List<Tuple<int, float[], Task>>();
            for (int i = 0; i < 2000; ++i)
            {
                int first = random.Next(1000 - 64);
                var rows = new float[64 * 150];
                reads.Add(Tuple.Create(first, rows, reader.ReadAsync(first, 64, rows)));
                if (i % 200 == 0) GC.Collect();
            }
            Task.WaitAll(reads.Select(r => r.Item3).ToArray());
            foreach (var read in reads)
                if (!read.Item2.SequenceEqual(new ArraySegment<float>(book, read.Item1 * 150, 64 * 150)))
                    Expect(false, "rows of a task");
            AggregateException wrong = Throws<AggregateException>(
                () => reader.ReadAsync(999, 64, new float[64 * 150]).Wait(), "a task beyond the end");
            Expect(((CddException)wrong.InnerException).Status == Status.OutOfRange, "is OutOfRange");

            var ended = new int[3];
            var some = new List<Task>();
            for (int i = 0; i < 500; ++i)
            {
                var source = new CancellationTokenSource();
                some.Add(reader.ReadAsync(0, 1000, new float[150000], null, source.Token));
                if (i % 2 == 0) source.Cancel();
            }
            foreach (Task task in some)
            {
                try { task.Wait(); ++ended[0]; }
                catch (AggregateException) { ++ended[task.IsCanceled ? 1 : 2]; }
            }
            Expect(ended[0] >= 250 && ended[0] + ended[1] == 500 && ended[2] == 0, "cancelled or done");
            Expect(ended[1] > 0, "some are taken back");
            var over = new CancellationTokenSource();
            over.Cancel();
            Expect(reader.ReadAsync(0, 1, new float[150], null, over.Token).IsCanceled, "cancelled before it begins");
        }
    }

    private static void Closing(string path, float[] book)
    {
        Reader reader = Reader.Open(path);
        var started = new CountdownEvent(4);
        int closed = 0;
        var threads = Enumerable.Range(0, 4).Select(_ => new Thread(() =>
        {
            var rows = new float[64 * 150];
            started.Signal();
            try
            {
                while (true)
                {
                    reader.Read(100, 64, rows);
                    if (rows[0] != book[100 * 150]) Expect(false, "rows while it is closed");
                }
            }
            catch (ObjectDisposedException) { Interlocked.Increment(ref closed); }
        })).ToArray();
        foreach (Thread thread in threads) thread.Start();
        started.Wait();
        Thread.Sleep(20);
        reader.Dispose();
        foreach (Thread thread in threads) thread.Join();
        Expect(closed == 4, "each thread is told that the reader is disposed of");
        reader.Dispose();

        var late = new float[150];
        Reader other = Reader.Open(path);
        Task task = other.ReadAsync(7, 1, late);
        other.Dispose();  // a read under way ends well
        task.Wait();
        Expect(late[0] == book[7 * 150], "a task of a reader that was closed");

        Writer writer = Writer.Create(path + ".w");
        writer.Close();
        writer.Close();
        Throws<ObjectDisposedException>(() => writer.Flush(), "a writer that is closed");
    }

    private static async Task Writing(string path, float[] book)
    {
        var layout = new Layout(typeof(float), 50, 3);
        using (Writer writer = Writer.Create(path, new WriterOptions { Layout = layout }))
        using (Reader reader = Reader.Open(path))
        {
            Task<long> follower = reader.FollowAsync(0);
            for (int i = 0; i < 100; ++i)
                await writer.AppendAsync(layout, new ArraySegment<float>(book, i * 1500, 1500).ToArray());
            Expect(writer.Rows == 1000, "rows that were appended by tasks");
            await writer.FlushAsync();
            Expect(await follower > 0, "a follower that waited is told");
            Expect(await reader.FollowAsync(999) == 1000, "and sees all rows after the flush");
            Expect(reader.Read<float>(0, 1000).SequenceEqual(book), "in the order of the calls");
            Expect(await reader.FollowAsync(1000, 5) == 1000, "nothing came in time");
            var over = new CancellationTokenSource();
            Task endless = reader.FollowAsync(1000, -1, over.Token);
            over.Cancel();
            try { await endless; Expect(false, "a follower that is cancelled"); }
            catch (OperationCanceledException) { }

            // Many at once, and a wrong one among them: each is told of its own end, and order stays.
            var tasks = Enumerable.Range(0, 50).Select(i => i == 20
                ? writer.AppendAsync(new Layout(typeof(float), 7), new float[7])
                : writer.AppendAsync(layout, new ArraySegment<float>(book, i * 150, 150).ToArray())).ToArray();
            writer.Close();  // after what was begun before
            for (int i = 0; i < 50; ++i)
            {
                try { await tasks[i]; Expect(i != 20, "rows of another shape"); }
                catch (CddException wrong) { Expect(i == 20 && wrong.Status == Status.InvalidArgument, "task " + i); }
            }
            Throws<ArgumentException>(() => { writer.AppendAsync(layout, new float[149]); }, "no whole rows, in a task");
            Throws<ObjectDisposedException>(() => { writer.FlushAsync(); }, "a task of a writer that is closed");
            Expect(reader.Refresh() == 1049, "rows of many tasks");
            Expect(reader.Read<float>(1000, 20).SequenceEqual(book.Take(20 * 150)) &&
                       reader.Read<float>(1020, 29).SequenceEqual(book.Skip(21 * 150).Take(29 * 150)),
                   "each where it belongs");
        }
    }

    private static void Following(string path)
    {
        var layout = new Layout(typeof(long));
        using (Writer writer = Writer.Create(path, new WriterOptions { Layout = layout }))
        using (Reader reader = Reader.Open(path))
        {
            Expect(reader.Follow(0, 10) == 0, "nothing came");
            var later = Task.Run(() =>
            {
                Thread.Sleep(50);
                writer.Append(layout, new long[] { 5, 6, 7 });
                writer.Flush();
            });
            Expect(reader.Follow(0, 20000) == 3, "rows that came while it waited");
            later.Wait();
            Expect(reader.Read<long>(0, 3).SequenceEqual(new long[] { 5, 6, 7 }), "which are these");
            writer.Append(layout, new long[] { 8 });
            writer.Flush();
            Expect(reader.Refresh() == 4, "rows after a refresh");
        }
    }

    private static int Main(string[] arguments)
    {
        string path = Path.Combine(arguments[1], "book \u00e9.cdd");
        float[] book = Book(1000);
        GoldenFiles(arguments[0]);
        ThereAndBack(path, book);
        Damage(path);
        Tasks(path, book);
        Closing(path, book);
        Following(Path.Combine(arguments[1], "live.cdd"));
        Writing(Path.Combine(arguments[1], "tasks.cdd"), book).Wait();
        Console.WriteLine(failures + " failures");
        return failures == 0 ? 0 : 1;
    }
}
